"""The ``server:`` block of a host, rendered, as a :class:`ServerSpec`."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from msauto.model.spec import Auth, Dialect, Secret, ServerSpec, Timeouts, Tls
from msauto.playbook.document import Spot
from msauto.playbook.files import beside
from msauto.playbook.schema import read_as
from msauto.playbook.schema_inventory import AuthArgs, ServerArgs, TlsArgs
from msauto.playbook.schema_values import Model
from msauto.playbook.templates import render_data
from msauto.playbook.variables import Scope, Variable


def build_server(name: str, variable: Variable, scope: Scope) -> ServerSpec:
    """Return the server of a host; raises :class:`InputError` with all that is wrong with its block."""
    spot = variable.spot
    args = read_as(ServerArgs, render_data(variable.value, scope, spot), spot)
    default = ServerSpec(name, "")
    connections = default.connections if args.connections is None else args.connections
    return ServerSpec(
        name=name,
        url=args.url,
        version=args.version,
        timezone=args.timezone,
        auth=_auth(args.auth),
        tls=_tls(args.tls, spot),
        timeouts=Timeouts(**_named(args.timeouts)),
        connections=connections,
        request_line=default.request_line if args.request_line is None else args.request_line,
        dialect=Dialect(**_named(args.dialect)),
        variables={key: value for key, value in scope.variables.raw().items() if key != "server"},
    )


def check_server(variable: Variable, scope: Scope) -> None:
    """Raise for what is wrong with a block even where parts of it cannot be known yet."""
    data = render_data(variable.value, scope, variable.spot, keep=True)
    read_as(ServerArgs, data, variable.spot)


def host_of(url: str, spot: Spot) -> str:
    """Return the name of the one server of ``--server URL``: its host."""
    read_as(ServerArgs, {"url": url}, spot)
    return urlsplit(url.strip()).hostname or ""


def _named(args: Model | None) -> dict[str, Any]:
    return {key: getattr(args, key) for key in args.model_fields_set} if args is not None else {}


def _auth(args: AuthArgs | None) -> Auth:
    if args is None:
        return Auth()
    return Auth(
        username=args.basic.username if args.basic else None,
        password=Secret(args.basic.password) if args.basic else None,
        bearer=Secret(args.bearer) if args.bearer is not None else None,
        headers=tuple((name, Secret(value)) for name, value in (args.headers or {}).items()),
    )


def _tls(args: TlsArgs | None, spot: Spot) -> Tls:
    if args is None:
        return Tls()
    paths = {name: getattr(args, name) for name in ("ca", "cert", "key")}
    found = {name: beside(spot.document.file, path) for name, path in paths.items() if path is not None}
    return Tls(verify=True if args.verify is None else args.verify, **found)
