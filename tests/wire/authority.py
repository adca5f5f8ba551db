"""A certificate authority of the tests' own: a CA, a server's and clients' certificates, made with openssl."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

OPENSSL = shutil.which("openssl")
PASSWORD = "geheim-key"


@dataclass(frozen=True)
class Authority:
    folder: Path
    name: str

    @property
    def ca(self) -> str:
        return str(self.folder / f"{self.name}.pem")

    def start(self) -> Authority:
        self._openssl(
            f"req -x509 -subj /CN={self.name} -keyout {self.name}.key -out {self.name}.pem "
            "-addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign"
        )
        return self

    def issue(self, name: str, alternative: str = "IP:127.0.0.1", *, password: str = "", days: int = 2) -> str:
        """Make a certificate with its key in one PEM file, and return its path; with -1 of ``days`` it is expired."""
        (self.folder / f"{name}.ext").write_text(f"subjectAltName={alternative}\n")
        self._openssl(f"req -subj /CN={name} -keyout {name}.key -out {name}.csr")
        signing = f"x509 -req -in {name}.csr -CA {self.name}.pem -CAkey {self.name}.key -CAcreateserial"
        self._openssl(f"{signing} -days {days} -extfile {name}.ext -out {name}.crt", new_key=False)
        if password:
            self._openssl(f"pkey -in {name}.key -aes256 -passout pass:{password} -out {name}.locked", new_key=False)
            (self.folder / f"{name}.locked").replace(self.folder / f"{name}.key")
        both = (self.folder / f"{name}.key").read_bytes() + (self.folder / f"{name}.crt").read_bytes()
        (self.folder / f"{name}.pem").write_bytes(both)
        return str(self.folder / f"{name}.pem")

    def server_context(self, pem: str, *, clients_of: Authority | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(pem)
        if clients_of is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(clients_of.ca)
        return context

    def _openssl(self, arguments: str, *, new_key: bool = True) -> None:
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"] if new_key else []
        verb, *rest = arguments.split()
        if verb == "req" and "-x509" not in rest and new_key:
            key = [part for part in key if part not in {"-days", "2"}]
        subprocess.run([OPENSSL or "", verb, *key, *rest], check=True, capture_output=True, cwd=self.folder)
