"""The ``server:`` block of a host as a :class:`ServerSpec`, with secrets from files and the keyring."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from msauto.documents.document import Problems, SourceNode
from msauto.documents.strict_model import Model
from msauto.documents.value_types import UnrenderedTemplate
from msauto.errors import InputError
from msauto.model.server import Auth, Dialect, Secret, ServerSpec, Timeouts, Tls
from msauto.playbook.input_files import beside
from msauto.playbook.schema.inventory import AuthArgs, BasicArgs, ServerArgs, TlsArgs
from msauto.playbook.schema.schema_errors import read_as
from msauto.playbook.templates.rendering import render_data
from msauto.playbook.variables import TemplateScope, Variable
from msauto.secrets.redaction import HIDDEN, can_redact
from msauto.secrets.sources import SecretSourceError, misplaced_secrets, secret_in_file, secret_in_keyring

_SECRET_KEYS: Final = ("password", "bearer", "key_password")
_LIMITS: Final = ("connections", "requests_per_second", "request_line")


def build_server(name: str, variable: Variable, scope: TemplateScope) -> ServerSpec:
    """Return the server of a host; raises :class:`InputError` with all problems of its block."""
    node = variable.node
    args = read_as(ServerArgs, _rendered(variable, scope), node)
    limits = {key: value for key in _LIMITS if (value := getattr(args, key)) is not None}
    return ServerSpec(
        name=name,
        url=args.url,
        version=args.version,
        timezone=args.timezone,
        auth=_auth(args.auth, name, node.child("auth")),
        tls=_tls(args.tls, node),
        timeouts=Timeouts(**_named(args.timeouts)),
        dialect=Dialect(**_named(args.dialect)),
        worker=_worker(scope),
        variables={key: value for key, value in scope.variables.raw().items() if key != "server"},
        **limits,
    )


def _worker(scope: TemplateScope) -> Mapping[str, float]:
    """Return the resources that a Dask worker needs to reach the server: the variable ``worker`` of the host."""
    variable = scope.variables.winner("worker")
    if variable is None:
        return {}
    remedy = "write worker: {site-oslo: 1}, the --resources of the Dask workers at its site"
    resources = render_data(variable.value, scope, variable.node)
    if not isinstance(resources, dict) or not resources:
        raise variable.node.error("worker must map names of resources to amounts", remedy, kind="wrong-type")
    for name, amount in resources.items():
        node = variable.node.child(name)
        if not re.fullmatch(r"[A-Za-z0-9_.-]+", name):
            raise node.error(f"{name!r} is not a valid name of a resource", remedy, key=True)
        if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 < amount < float("inf"):
            raise node.error(f"the amount of {name} must be a number above 0, not {amount!r}", remedy)
    return {str(name): float(amount) for name, amount in resources.items()}


def _rendered(variable: Variable, scope: TemplateScope) -> Any:
    """Return the rendered block; raises for a secret that cannot be redacted where it is."""
    data = render_data(variable.value, scope, variable.node)
    found = misplaced_secrets(data, lambda way: way[:1] == ("auth",) or way[-1:] in {("password",), ("key_password",)})
    Problems(*(variable.node.child(*way).problem(message, remedy) for way, message, remedy in found)).check()
    return data


def check_server(variable: Variable, scope: TemplateScope) -> None:
    """Raise for problems of a block of which parts may be unknown."""
    read_as(ServerArgs, render_data(variable.value, scope, variable.node, keep=True), variable.node)


def server_secrets(block: Any, node: SourceNode) -> Iterator[str]:
    """Yield the secrets of a rendered block that can be redacted, also those in files; what is unknown is left out."""
    for way in (("auth", "basic"), ("auth",), ("auth", "headers"), ("tls",)):
        part = block
        for key in way:
            part = part.get(key) if isinstance(part, dict) else None
        for key, value in part.items() if isinstance(part, dict) else ():
            text = str(value) if isinstance(value, str) and not isinstance(value, UnrenderedTemplate) else ""
            if text and key.endswith("_file") and key.removesuffix("_file") in _SECRET_KEYS:
                try:
                    text = secret_of_file(text, node.child(*way, key)).reveal()
                except InputError:  # reported when the server is needed
                    continue
            elif key not in _SECRET_KEYS and way[-1] != "headers":
                continue
            if can_redact(text) and text != HIDDEN:
                yield text


def host_of(url: str, node: SourceNode) -> str:
    """Return the name of the one server of ``--server URL``: its host."""
    return urlsplit(read_as(ServerArgs, {"url": url}, node).url).hostname or ""


def _named(args: Model | None) -> dict[str, Any]:
    return {key: getattr(args, key) for key in args.model_fields_set} if args is not None else {}


def _auth(args: AuthArgs | None, name: str, node: SourceNode) -> Auth:
    if args is None:
        return Auth()
    basic = args.basic
    return Auth(
        username=basic.username if basic else None,
        password=_password(basic, node.child("basic")) if basic else None,
        bearer=read_secret(args.bearer, args.bearer_file, args.bearer_keyring, name, node, "bearer"),
        headers=tuple((name, Secret(value)) for name, value in (args.headers or {}).items()),
    )


def _password(args: BasicArgs, node: SourceNode) -> Secret | None:
    user = args.username or ""
    return read_secret(args.password, args.password_file, args.password_keyring, user, node, "password")


def _tls(args: TlsArgs | None, node: SourceNode) -> Tls:
    if args is None:
        return Tls()
    paths = {name: path for name in ("ca", "cert", "key") if (path := getattr(args, name)) is not None}
    found = {name: beside(node.document.file, path) for name, path in paths.items()}
    password = None if args.key_password is None else Secret(args.key_password)
    return Tls(verify=args.verify is not False, key_password=password, **found)


# Secrets of a file or the keyring ---------------------------------------------------------------------------------


def read_secret(
    text: str | None, file: str | None, keyring: str | None, user: str, node: SourceNode, key: str
) -> Secret | None:
    """Return a secret from its text, its file beside the inventory, or the keyring entry of a user.

    The mapping at ``node`` has it as ``key``, ``<key>_file`` or ``<key>_keyring``. Raises :class:`InputError`, which
    never shows the secret.
    """
    if file is not None:
        return secret_of_file(file, node.child(f"{key}_file"))
    if keyring is not None:
        return secret_of_keyring(keyring, user, node.child(f"{key}_keyring"))
    return None if text is None else Secret(text)


def secret_of_file(file: str, node: SourceNode) -> Secret:
    """Return the secret that a file beside the document contains; raises :class:`InputError`."""
    try:
        return Secret(secret_in_file(Path(beside(node.document.file, file)), file))
    except SecretSourceError as error:
        raise node.error(str(error), error.remedy, kind="secret") from None


def secret_of_keyring(service: str, user: str, node: SourceNode) -> Secret:
    """Return the secret of a user in the system keyring; raises :class:`InputError`."""
    try:
        return Secret(secret_in_keyring(service, user))
    except SecretSourceError as error:
        raise node.error(str(error), error.remedy, kind="secret") from None
