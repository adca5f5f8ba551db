"""A certificate authority of the tests' own: a CA, a server's and clients' certificates, made with trustme."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

PASSWORD = "geheim-key"


@dataclass(frozen=True)
class Authority:
    folder: Path
    name: str
    authority: trustme.CA = field(default_factory=trustme.CA)

    @property
    def ca(self) -> str:
        return str(self.folder / f"{self.name}.pem")

    def start(self) -> Authority:
        self.authority.cert_pem.write_to_path(self.ca)
        return self

    def issue(
        self, name: str, alternative: str = "127.0.0.1", *, password: str = "", days: int = 2
    ) -> str:
        """Make a certificate with its key in one PEM file, and return its path; with -1 of ``days`` it is expired."""
        end = datetime.now(UTC) + timedelta(days)
        begin = end - timedelta(days=4)
        made = self.authority.issue_cert(
            alternative, common_name=name, not_before=begin, not_after=end
        )
        key = made.private_key_pem.bytes()
        if password:
            lock = BestAvailableEncryption(password.encode())
            key = load_pem_private_key(key, None).private_bytes(
                Encoding.PEM, PrivateFormat.PKCS8, lock
            )
        path = self.folder / f"{name}.pem"
        path.write_bytes(key + made.cert_chain_pems[0].bytes())
        return str(path)

    def server_context(self, pem: str, *, clients_of: Authority | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(pem)
        if clients_of is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(clients_of.ca)
        return context
