"""Access to a server: its URL, authentication, and TLS (interface, «Access and limits»)."""

from __future__ import annotations

import asyncio
import base64
import re
import socket
import ssl
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from msgspec import structs

from msauto.errors import AddressError, NotSentError
from msauto.model.server import (
    ONE_HOST,
    Auth,
    PlacedPath,
    Secret,
    ServerSpec,
    Timeouts,
    Tls,
    Transport,
    UrlError,
    host_key,
    is_transport,
    parse_server_url,
    with_scheme,
)
from msauto.secrets.redaction import Secrets
from msauto.server.error_answers import clean, show_body
from msauto.version import __version__

T = TypeVar("T")


def spec_of(url: str) -> ServerSpec:
    """Return the spec of a server named by its host; the port is 7901 if the URL has none.

    A user name and password in the URL become HTTP basic authentication. Raises ``AddressError``.
    """
    try:
        parts = parse_server_url(with_scheme(url))
    except UrlError as error:
        # The text before an @ may be a password, that after a ? a token.
        shown = "" if "@" in url or "?" in url else f" {url[:100]!r}"
        raise AddressError(
            f"the server's URL{shown} {error}", remedy="write http://host:7901"
        ) from None
    auth = Auth()
    if parts.username is not None:
        auth = Auth(username=parts.username, password=Secret(parts.password or ""))
    return ServerSpec(name=parts.host, url=parts.url, auth=auth)


async def check_addresses(servers: Sequence[ServerSpec]) -> None:
    """Raise ``AddressError`` where the names of two servers lead to one address and port: it would be planned twice.

    A name that cannot be resolved is left out.
    """
    networked = [server for server in servers if server.transport is None]
    if len(networked) < 2:
        return
    keys_of_each = await asyncio.gather(*map(_keys_of, networked))
    server_of: dict[str, ServerSpec] = {}
    for server, keys in zip(networked, keys_of_each, strict=True):
        for key in keys:
            other = server_of.setdefault(key, server)
            if other is not server:
                raise AddressError(
                    f"the hosts {other.name!r} and {server.name!r} are one server: "
                    f"{other.url} and {server.url} lead to {key}",
                    remedy=ONE_HOST,
                )


async def _keys_of(server: ServerSpec) -> Collection[str]:
    """Return the keys of all addresses that the host of a server has."""
    url = urlsplit(server.url)
    with suppress(OSError, UnicodeError):
        infos = await asyncio.get_running_loop().getaddrinfo(
            url.hostname, url.port, type=socket.SOCK_STREAM
        )
        return dict.fromkeys(f"{host_key(str(info[4][0]))}:{url.port}" for info in infos)
    return ()


def spec_with(
    server: ServerSpec | str,
    *,
    auth: Auth | tuple[str, str] | None = None,
    timeout: Timeouts | float | None = None,
    verify: Tls | bool | str | Path = True,
    transport: Transport | None = None,
) -> ServerSpec:
    """Return the spec of a server, given by its address or spec, with what a caller of the client sets besides.

    Raises ``AddressError`` for a value of another type.
    """
    if isinstance(server, str):
        server = spec_of(server)
    spec = _expected("server", server, ServerSpec, "an address")
    if spec.connections < 1:
        raise AddressError(
            f"connections must be at least 1, not {spec.connections}",
            remedy="leave it out: it is 16",
        )
    if transport is not None:
        if not is_transport(transport):
            raise AddressError(
                "transport must be a transport of httpx2", remedy="see help(MediaServer)"
            )
        spec = replace(spec, transport=transport)
    if auth is not None:
        spec = replace(spec, auth=_auth(auth))
    if timeout is not None:
        spec = replace(spec, timeouts=_timeouts(timeout))
    if verify is not True:
        spec = replace(spec, tls=_tls(verify, spec.tls))
    return spec


def _auth(given: object) -> Auth:
    if isinstance(given, tuple | list) and [type(text) for text in given] == [str, str]:
        username, password = given
        return Auth(username=username, password=Secret(password))
    return _expected("auth", given, Auth, "a user name and a password")


def _timeouts(given: object) -> Timeouts:
    if isinstance(given, int | float):
        given = Timeouts(*[given] * len(Timeouts.__struct_fields__))
    timeouts = _expected("timeout", given, Timeouts, "a number of seconds")
    if not all(seconds > 0 for seconds in structs.astuple(timeouts)):
        raise AddressError(
            "a time-out must be more than 0 seconds", remedy="give the seconds, such as timeout=10"
        )
    return timeouts


def _tls(verify: object, own: Tls) -> Tls:
    if isinstance(verify, Tls):
        return verify
    if verify is False:
        return structs.replace(own, verify=False)
    if isinstance(verify, Path):
        verify = str(verify)
    path = _expected("verify", verify, str, "True, False, the path of a PEM file, or a Tls")
    return structs.replace(own, ca=path)


def _expected(name: str, value: object, kind: type[T], also: str) -> T:
    """Return a value of this type; the message does not show another one, which may be a password."""
    if isinstance(value, kind):
        return value
    form = also if kind is str else f"{also}, or a {kind.__name__}"
    raise AddressError(
        f"{name} must be {form}, not of type {type(value).__name__}", remedy="see help(MediaServer)"
    )


def base_url(spec: ServerSpec) -> str:
    """Return the server's URL; raises ``AddressError`` for one that holds a password, which would be visible."""
    plain = spec_of(spec.url)
    if plain.auth != Auth():
        raise AddressError(
            f"server {spec.name}: its URL holds a password", remedy="set it in `auth`"
        )
    return plain.url


def headers(spec: ServerSpec) -> list[tuple[str, str]]:
    """Return the headers of every request, with authentication. Raises ``AddressError``."""
    made = [("User-Agent", f"msauto/{__version__}"), ("Accept", "*/*")]
    auth = spec.auth
    if auth.username is not None:
        if ":" in auth.username:
            raise AddressError(
                f"server {spec.name}: a user name holds a colon",
                remedy="remove the colon: it separates user name and password",
            )
        made.append(("Authorization", f"Basic {basic_credentials(auth.username, auth.password)}"))
    if auth.bearer is not None:
        made.append(("Authorization", f"Bearer {_header_value(auth.bearer, 'bearer', spec)}"))
    for name, secret in auth.headers:
        value = _header_value(secret, name, spec)
        made.append((name.encode("ascii", "replace").decode(), value))
    return made


def basic_credentials(username: str, password: Secret | None) -> str:
    """Return user name and password as HTTP basic authentication sends them."""
    revealed = password.reveal() if password else ""
    return base64.b64encode(f"{username}:{revealed}".encode()).decode()


def secrets_of(spec: ServerSpec) -> Secrets:
    """Return the secrets of a server, to redact them in its answers: an error may repeat what it was sent."""
    auth = spec.auth
    held = [
        auth.password,
        auth.bearer,
        spec.tls.key_password,
        *(value for _, value in auth.headers),
    ]
    texts = [secret.reveal() for secret in held if secret is not None]
    if auth.username is not None and auth.password is not None:
        texts.append(basic_credentials(auth.username, auth.password))
    shapes = []
    for text in texts:
        shapes.append(text)
        shapes.append(clean(text))
        shapes.append(show_body(text.encode()))
    return Secrets(shapes, shortest=3)  # what cannot be chosen longer is hidden as well


def _header_value(secret: Secret, name: str, spec: ServerSpec) -> str:
    text = secret.reveal()
    if not text.isprintable():
        raise AddressError(
            f"server {spec.name}: the value of auth {name!r} holds a line end or another control character",
            remedy="check where the secret comes from: a file often ends with a line end",
        )
    return text


def tls(spec: ServerSpec) -> ssl.SSLContext | bool:
    """Return the TLS settings of the server; ``True`` where it has none. Raises ``NotSentError``.

    aiohttp's own settings are never used: the command line has it imported without the authorities of the system.
    """
    own = spec.tls
    if not spec.url.startswith("https:"):
        return True
    if own == Tls():
        return _usual_tls()
    try:
        context = ssl.create_default_context(cafile=own.ca)
        if own.cert:
            password = own.key_password.reveal() if own.key_password else ""
            # Without a password callback OpenSSL would ask for one on the terminal, and wait.
            context.load_cert_chain(own.cert, own.key, password=lambda: password)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise _tls_error(spec, error) from None
    if not own.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _tls_error(spec: ServerSpec, error: Exception) -> NotSentError:
    named = []
    missing = []
    for key in ("ca", "cert", "key"):
        path = getattr(spec.tls, key)
        if not path:
            continue
        shown = f"{key}: {path}"
        if isinstance(path, PlacedPath):
            shown += f", {path.place}"
        named.append(shown)
        if not Path(path).is_file():
            missing.append(shown)
    why = re.sub(r"^\[.*?\] | \(_ssl.*\)$", "", str(error))
    remedy = (
        "`tls` needs PEM files: ca, and cert with its key in the same file or as key; "
        "`key_password` for a key that is encrypted"
    )
    if missing:
        why = "no such file"
        remedy = "correct the path, which starts beside the inventory"
    files = ", ".join(missing or named)
    return NotSentError(
        f"the TLS files cannot be used ({files}): {why}", server=spec.name, remedy=remedy
    )


@cache
def _usual_tls() -> ssl.SSLContext:
    """Return what all servers share that have no settings: the authorities of the system take long to load."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(("http/1.1",))
    return context
