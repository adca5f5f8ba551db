"""TLS: who is trusted, and that a refused certificate means that nothing was sent."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from msauto.errors import NotSentError
from msauto.model.plan import Request
from msauto.model.server import ServerSpec, Tls
from msauto.server.client import AsyncMediaServer
from tests.wire.raw_server import OK, RawServer

OPENSSL = shutil.which("openssl")
pytestmark = pytest.mark.skipif(OPENSSL is None, reason="needs the openssl command to make a certificate")
WRITE = Request("POST", "/storage/N@x?command=RESTORE")


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    made = [OPENSSL or "", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    made += ["-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    made += ["-keyout", str(path), "-out", str(path.with_suffix(".crt"))]
    subprocess.run(made, check=True, capture_output=True)
    path.write_bytes(path.read_bytes() + path.with_suffix(".crt").read_bytes())
    return path


def send(pem: Path, tls: Tls, *, ask_client: bool = False) -> RawServer:
    async def main() -> RawServer:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(pem)
        if ask_client:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(pem)
        async with RawServer(OK, tls=context) as server:
            async with AsyncMediaServer(ServerSpec("a", server.url, tls=tls)) as client:
                await client.send(WRITE)
            return server

    return asyncio.run(main())


def test_unknown_certificate_is_refused_and_nothing_sent(pem: Path) -> None:
    with pytest.raises(NotSentError, match="no secure connection") as caught:
        send(pem, Tls())
    assert "`tls`" in caught.value.remedy


@pytest.mark.parametrize("trust", ["ca", "anybody"])
def test_known_certificate_or_no_check(pem: Path, trust: str) -> None:
    tls = Tls(ca=str(pem)) if trust == "ca" else Tls(verify=False)
    assert len(send(pem, tls).exchanges) == 1


def test_client_certificate(pem: Path) -> None:
    assert len(send(pem, Tls(ca=str(pem), cert=str(pem)), ask_client=True).exchanges) == 1
