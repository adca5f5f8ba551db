"""The hosts of a run: their template names, and their servers with the secrets from files and the keyring."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeGuard
from urllib.parse import urlsplit

from msgspec import UNSET, Struct, UnsetType, field, structs

from msauto.documents.document import (
    Document,
    MergedNode,
    Problems,
    SourceNode,
    UnrenderedTemplate,
    outside_node,
)
from msauto.documents.strict_model import Model
from msauto.documents.value_types import has_pending
from msauto.errors import InputError, MsautoError, Problem, SourceLocation
from msauto.file_access import WriteAccess, leads_out, repository_of
from msauto.model.desired import OutsidePolicy
from msauto.model.server import (
    ONE_HOST,
    Auth,
    Dialect,
    PlacedPath,
    Secret,
    ServerSpec,
    Timeouts,
    Tls,
    Transport,
    UrlError,
    is_sent_openly,
    parse_server_url,
    server_key,
    with_scheme,
)
from msauto.playbook.input_files import Files, LookupContext, beside
from msauto.playbook.inventory import (
    Host,
    Inventory,
    VarsFolders,
    folder_of,
    inventory_files,
    load_inventory,
    match_hosts,
    read_vars_folders,
)
from msauto.playbook.schema.inventory import AuthArgs, HostArgs, ServerArgs, TlsArgs
from msauto.playbook.schema.schema_errors import read_as
from msauto.playbook.templates.names import OMIT, AssetView, EnvView, TemplateFunctionError
from msauto.playbook.templates.rendering import check_texts, render_data, render_shown
from msauto.playbook.variables import (
    HostVars,
    Level,
    TemplateScope,
    Variable,
    Variables,
    read_extra,
)
from msauto.secrets.commands import SecretCommands
from msauto.secrets.redaction import HIDDEN, can_redact
from msauto.secrets.sources import (
    DataPath,
    leaves,
    misplaced_secrets,
    secret_in_file,
    secret_in_keyring,
)


class ResolveOptions(Struct, frozen=True):
    """What to resolve. ``extra_vars`` are ``k=v``, ``@file`` or a mapping as text; ``now`` has a zone.

    ``role_folders`` hold roles, besides ``roles/`` beside a playbook. ``lookup_folders`` are folders outside the
    repository that ``lookup()`` may read, ``download_folders`` those that downloads may be written to. ``documents``
    are playbooks and inventories that a program gives as data, by their names in ``playbooks`` and ``inventories``.
    ``transport`` replaces the network to each server.
    """

    playbooks: tuple[str, ...]
    inventories: tuple[str, ...] = ()
    server_url: str | None = None
    extra_vars: tuple[str, ...] = ()
    limit: str | None = None
    tags: tuple[str, ...] = ()
    skip_tags: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    role_folders: tuple[str, ...] = ()
    lookup_folders: tuple[str, ...] = ()
    writable: WriteAccess = field(default_factory=WriteAccess)
    reserved: frozenset[Path] = frozenset()
    outside: OutsidePolicy | UnsetType = UNSET
    secrets: SecretCommands = field(default_factory=SecretCommands)
    documents: Mapping[str, Document] = {}
    transport: Transport | None = None


def open_hosts(options: ResolveOptions, files: Files) -> Hosts:
    """Return the hosts that the options name; raises :class:`InputError`.

    Flaws of the texts that leave every value known (a duplicate key) are only collected in ``files``.
    """
    problems = Problems()
    extra: list[Variable] = []
    for text in options.extra_vars:
        with problems:
            extra += read_extra(text, files)
    with problems:
        inventory = _inventory(options.inventories, options.server_url, files)
    if problems:
        raise InputError([*files.problems, *problems])
    hosts = Hosts(inventory, extra, options, files)
    for playbook in options.playbooks:
        hosts.variables_in(str(Path(playbook).parent))
    if options.server_url is not None:
        hosts = _only_server(hosts, options.server_url)
    hosts.know_secrets()
    return hosts


def _inventory(inventories: Sequence[str], server_url: str | None, files: Files) -> Inventory:
    """Return the inventory; without one, that of ``--server URL``, which has no hosts yet."""
    if not inventories and server_url is not None:
        return Inventory({}, {"all": ()})
    if not inventories:
        raise outside_node("inventory").error(
            "no inventory", "use -i INVENTORY or --server URL", kind="host"
        )
    inventory = load_inventory(inventories, files)
    if not inventory.hosts:
        raise outside_node(inventories[0]).error(
            "the inventory has no hosts", "add all: {hosts: {...}}", kind="host"
        )
    return inventory


def _only_server(hosts: Hosts, server_url: str) -> Hosts:
    """Return the hosts limited to the one of ``--server URL``.

    A host of the inventory with this URL keeps its name and variables, and patterns match it as usual. Otherwise it is
    a new host with the variables of the group ``all``, and every pattern matches it alone.
    """
    node = outside_node("--server", server_url)
    inventory = hosts.inventory
    options = hosts.options
    url = read_as(ServerArgs, {"url": with_scheme(server_url)}, node).url
    hosts_of_url: list[str] = []
    for name in inventory.hosts:
        known = hosts.url_of(name)
        if known and server_key(known[0]) == server_key(url):
            hosts_of_url.append(name)
    Problems(hosts.same_servers(hosts_of_url)).check()
    if hosts_of_url:
        limit = hosts_of_url[0]
        if options.limit is not None:
            limit = f"{options.limit}:&{limit}"
        return structs.replace(hosts, options=structs.replace(options, limit=limit))
    name = urlsplit(url).hostname or ""
    if name in inventory.hosts:
        why = f"the inventory has another server called {name!r}"
        raise node.error(
            why, "add this one to the inventory under a name of its own, and use -l", kind="host"
        )
    server = Variable("server", {"url": url}, Level.INVENTORY_HOST, node)
    host = Host(node, [*inventory.of_all, server])
    groups = {**inventory.groups, "all": (*inventory.groups["all"], name)}
    alone = structs.replace(
        inventory, hosts={**inventory.hosts, name: host}, groups=groups, single=name
    )
    return Hosts(alone, hosts.extra, options, hosts.files)


class Hosts(Struct):
    """All hosts of a run."""

    inventory: Inventory
    extra: Sequence[Variable]
    options: ResolveOptions
    files: Files
    _scopes: dict[tuple[str, str], dict[str, TemplateScope]] = {}
    _servers: dict[str, ServerSpec] = {}
    _variables: dict[str, dict[str, Variables]] = {}
    warnings: list[str] = []
    _blocks: dict[str, tuple[dict[str, Any], MergedNode]] = {}

    def __post_init__(self) -> None:
        hosts = self.inventory.hosts.items()
        own = {name: Variables((*host.variables, *self.extra)) for name, host in hosts}
        self._variables = {"": own}
        self.warnings = list(self.inventory.warnings)

    def variables_in(self, folder: str) -> Mapping[str, Variables]:
        """Return the variables of all hosts, with those beside playbooks of a folder; raises :class:`InputError`."""
        if folder not in self._variables:
            self._variables[folder] = self._with_vars_folders(Path(folder))
        return self._variables[folder]

    def _with_vars_folders(self, folder: Path) -> dict[str, Variables]:
        """Return the variables with those of ``group_vars/`` and ``host_vars/`` of a folder that no inventory is in."""
        own = self._variables[""]
        given = self.options.documents
        read = {folder_of(path).resolve() for path in self.options.inventories if path not in given}
        if folder.resolve() in read or not given.keys().isdisjoint(self.options.playbooks):
            return own
        inventory = self.inventory
        beside = read_vars_folders(folder, inventory.hosts, inventory.groups, self.files)
        _refuse_servers(beside)
        self.warnings += beside.warnings
        if not beside.of_groups and not beside.of_hosts:
            return own
        more: dict[str, list[Variable]] = {host: [] for host in own}
        for group, members in inventory.groups.items():
            for host in members:
                more[host] += beside.of_groups.get(group, ())
        for host, variables in beside.of_hosts.items():
            more[host] += variables
        return {host: Variables(more[host], variables) for host, variables in own.items()}

    def limit(self) -> frozenset[str]:
        """Return the hosts that ``--limit`` matches, with ``--server`` at most its host."""
        pattern = self.options.limit
        single = self.inventory.single
        possible = frozenset(self.inventory.hosts if single is None else (single,))
        if pattern is None:
            return possible
        node = outside_node("--limit", pattern)
        hosts = possible.intersection(match_hosts(pattern, self.inventory, node, self.files.read))
        if not hosts:
            why = f"the limit does not match the server {single!r}"
            raise node.error(why, "remove the limit, or --server", kind="host")
        return hosts

    def scope(self, name: str, folder: str, top: str = "") -> TemplateScope:
        """Return the template names of a host, for playbooks of a folder.

        ``top`` is the folder of the playbook that was given, beside which are ``group_vars``; they set no server.
        """
        variables = self.variables_in(top)
        if variables is self._variables[""]:
            top = ""
        if (folder, top) not in self._scopes:
            self._scopes[folder, top] = self._scopes_of(Path(folder), variables)
        return self._scopes[folder, top][name]

    def _scopes_of(
        self, folder: Path, variables_of_hosts: Mapping[str, Variables]
    ) -> dict[str, TemplateScope]:
        """Return the template names of all hosts, each of which sees those of all others."""
        options = self.options
        reserved = set(options.reserved)
        for inventory in options.inventories:
            if inventory not in options.documents:
                reserved.update(Path(file).resolve() for file in inventory_files(inventory))
        context = LookupContext(
            options.env,
            self.files,
            folder,
            repository_of(folder),
            opened=options.lookup_folders,
            writable=options.writable,
            secrets=options.secrets,
            reserved=frozenset(reserved),
        )
        scopes: dict[str, TemplateScope] = {}
        host_variables: dict[str, HostVars] = {}
        groups = {group: list(members) for group, members in self.inventory.groups.items()}
        shared: dict[str, Any] = {
            "env": EnvView(options.env),
            "now": options.now,
            "playbook_dir": str(folder.resolve()),
            "groups": groups,
            "hostvars": MappingProxyType(host_variables),
            "asset": AssetView(None),
            "omit": OMIT,
        }
        groups_of_host: dict[str, list[str]] = {host: [] for host in variables_of_hosts}
        for group in sorted(groups.keys() - {"all"}):
            for host in groups[group]:
                groups_of_host[host].append(group)
        for host, variables in variables_of_hosts.items():
            own = {"inventory_hostname": host, "group_names": groups_of_host[host]}
            scopes[host] = TemplateScope(variables, {**shared, **own}, context)
            host_variables[host] = HostVars(scopes[host])
        return scopes

    def server(self, name: str, folder: str) -> ServerSpec:
        """Return the server of a host; raises :class:`InputError` with all problems of its block."""
        if name not in self._servers:
            scope = self.scope(name, folder)
            block, node = self._block(name, scope)
            self._servers[name] = _build_server(name, block, node, scope, self.options.transport)
        return self._servers[name]

    def check_server(self, name: str) -> None:
        """Raise for problems of the ``server:`` block; its secrets need not be set."""
        block, node = self._known_block(name)
        read_as(ServerArgs, block, node)
        for path, value in leaves(block.get("auth")):
            names_secret = path[-1:] in {("password_secret",), ("bearer_secret",)}
            if names_secret and not isinstance(value, UnrenderedTemplate):
                _printed_secret(value, node.child("auth", *path), self._offline(name).surroundings)

    def stand_in(self, name: str) -> ServerSpec:
        """Return a server with only its list separator, as far as it is known offline: checks of values need it."""
        with suppress(InputError):
            dialect = self._known_block(name)[0].get("dialect")
            separator = dialect.get("list_separator") if isinstance(dialect, Mapping) else None
            if _is_known_text(separator) and separator:
                return ServerSpec(name, "", dialect=Dialect(list_separator=str(separator)))
        return ServerSpec(name, "")

    def _block(
        self, name: str, scope: TemplateScope, *, keep: bool = False
    ) -> tuple[dict[str, Any], MergedNode]:
        """Return the keys of all ``server:`` blocks of a host, rendered, the strongest of each, and where they are set.

        Raises :class:`InputError`. A key that a stronger block sets as well is not evaluated.
        """
        blocks = self._variables[""][name].all_of("server")
        if not blocks:
            why = f"the host {name!r} has no server"
            remedy = "add server: {url: http://host:7901}"
            raise self.inventory.hosts[name].node.error(why, remedy, key=True, kind="host")
        merged: dict[str, Any] = {}
        parts: dict[str | int, SourceNode] = {}
        problems = Problems()
        with problems:
            for key in server_keys(blocks, scope, keep=keep):
                if key.name in parts:
                    continue
                parts[key.name] = key.node
                with problems:
                    value = render_data(key.value, scope, key.node, keep=keep)
                    if value is OMIT:
                        del parts[key.name]
                    else:
                        check_texts(value, key.node)
                        merged[key.name] = value
        problems.check()
        return merged, MergedNode(blocks[0].node.document, blocks[0].node.path, parts)

    def _known_block(self, name: str) -> tuple[dict[str, Any], MergedNode]:
        """Return the keys of the server of a host as far as they are known; raises :class:`InputError`."""
        if name not in self._blocks:
            self._blocks[name] = self._block(name, self._offline(name), keep=True)
        return self._blocks[name]

    def _offline(self, name: str) -> TemplateScope:
        return self.scope(name, ".").offline()

    def same_servers(self, names: Iterable[str]) -> Iterator[Problem]:
        """Yield a problem for each host whose server another host has as well: its targets would be planned twice.

        A server whose URL is not known (a secret that is not set) is left out.
        """
        hosts_of_server: dict[str, tuple[str, str, SourceNode]] = {}
        for name in names:
            known = self.url_of(name)
            if known is None:
                continue
            url, node = known
            first, first_url, first_node = hosts_of_server.setdefault(
                server_key(url), (name, url, node)
            )
            if first == name:
                continue
            place = first_node.place
            # Both have the URL of their group; only the hosts differ.
            is_of_group = place == node.place
            if is_of_group:
                place = self.inventory.hosts[first].node.key_place
                node = self.inventory.hosts[name].node
            urls = url if url == first_url else f"{first_url} and {url}"
            message = f"the hosts {first!r} ({place}) and {name!r} are one server: {urls}"
            yield node.problem(message, ONE_HOST, key=is_of_group, kind="host")

    def sent_openly(self, names: Iterable[str]) -> Iterator[Problem]:
        """Yield a warning for each ``auth`` block whose secrets are sent over http through a network.

        A group's block is named once, with the first of its hosts.
        """
        hosts_of_place: dict[SourceLocation, list[str]] = {}
        nodes: dict[SourceLocation, SourceNode] = {}
        for name in names:
            known = self.url_of(name)
            if known is None or not is_sent_openly(known[0]):
                continue
            block, server = self._known_block(name)
            if not block.get("auth"):
                continue
            node = server.child("auth")
            nodes[node.place] = node
            hosts_of_place.setdefault(node.place, []).append(name)
        for place, hosts in hosts_of_place.items():
            names_of_hosts = hosts[0]
            if len(hosts) > 1:
                names_of_hosts += f" and {len(hosts) - 1} more"
            message = f"the secrets of {names_of_hosts} cross the network unencrypted: the URL begins with http:"
            remedy = "use https, or a tunnel that begins on this machine"
            yield replace(nodes[place].problem(message, remedy, kind="secret"), level="warning")

    def url_of(self, name: str) -> tuple[str, SourceNode] | None:
        """Return the URL of a host and its place; ``None`` if it is not known."""
        try:
            block, server = self._known_block(name)
            url = block.get("url")
            if not _is_known_text(url):
                return None
            return parse_server_url(url).url, server.child("url")
        except (InputError, UrlError):
            return None

    def know_secrets(self) -> None:
        """Let every output hide the secrets of all servers, whatever reads them: a variable, or a file as a text."""
        for name, variables in self._variables[""].items():
            blocks = variables.all_of("server")
            if not any(map(_may_hold_secrets, blocks)):
                continue
            scope = self._offline(name)
            keys: list[Variable] = []
            with suppress(InputError):  # reported for the host that needs it
                keys.extend(server_keys(blocks, scope, keep=True))
            for key in keys:
                with suppress(InputError):
                    value = render_data(key.value, scope, key.node, keep=True)
                    if key.name in _SECRET_PARTS:
                        for text in _server_secrets(value, key.node):
                            self.files.tracker.secrets.add(text)


_SECRET_PARTS: Final = frozenset({"auth", "tls"})


def _may_hold_secrets(block: Variable) -> bool:
    """Return whether a ``server:`` block has keys of secrets, or templates that may make some."""
    has_their_keys = isinstance(block.value, dict) and not _SECRET_PARTS.isdisjoint(block.value)
    return has_their_keys or has_pending(block.value)


def _refuse_servers(beside: VarsFolders) -> None:
    """Raise :class:`InputError` for a server that files beside a playbook set: a playbook may be untrusted."""
    problems = Problems()
    for variables in (*beside.of_groups.values(), *beside.of_hosts.values()):
        for variable in variables:
            if variable.name == "server":
                why = "files beside a playbook set no server"
                remedy = (
                    "move it into the inventory, or group_vars or host_vars beside the inventory"
                )
                problems.append(variable.node.problem(why, remedy, key=True, kind="host"))
    problems.check()


def _is_known_text(value: Any) -> TypeGuard[str]:
    return isinstance(value, str) and not isinstance(value, UnrenderedTemplate)


def server_keys(
    blocks: Iterable[Variable], scope: TemplateScope, *, keep: bool = False
) -> Iterator[Variable]:
    """Yield each key of ``server:`` blocks like a variable, unrendered; raises :class:`InputError` for another form."""
    for block in blocks:
        value = block.value
        if isinstance(value, UnrenderedTemplate):
            value = render_data(value, scope, block.node, keep=keep)
        if not isinstance(value, dict):
            check_texts(value, block.node)
            host = SourceNode(block.node.document, block.node.path[:-1])
            read_as(HostArgs, {"server": value}, host)
            continue
        for key, content in value.items():
            yield Variable(key, content, block.level, block.node.child(key))


# Servers, for commands without a playbook


class NamedServer(Struct, frozen=True):
    """A server and the media database of its host variables; ``None`` if unset, or if it needs a playbook."""

    spec: ServerSpec
    database: str | None


def named_servers(
    options: ResolveOptions, *, names: Collection[str] | None = None, folder: str = "."
) -> tuple[NamedServer, ...]:
    """Return the servers that ``--limit`` matches, or those called ``names``, as a play in this folder sees them.

    Raises :class:`InputError` with all problems. Other servers of the inventory are ignored: their secrets need not be
    set.
    """
    files = Files(options.lookup_folders, options.documents)
    problems = files.problems
    servers: list[NamedServer] = []
    with files.tracker.secrets.redacted_errors():
        hosts = open_hosts(options, files)
        with problems:
            if names is None:
                limit = hosts.limit()
                names = [name for name in hosts.inventory.hosts if name in limit]
            for name in dict.fromkeys(names):
                with problems:
                    servers.append(_named_server(name, hosts, folder))
        problems.extend(hosts.same_servers([server.spec.name for server in servers]))
        problems.check()
    return tuple(servers)


def _named_server(name: str, hosts: Hosts, folder: str) -> NamedServer:
    """Return a server by its name; raises :class:`InputError`."""
    known = hosts.inventory.hosts
    if name not in known:
        why = f"the plan is for the server {name!r}, which the inventory does not have"
        remedy = "give the inventory that has it (-i)"
        raise outside_node("inventory").error(why, remedy, kind="host")
    if hosts.options.server_url is not None and name not in hosts.limit():
        why = f"the plan is for the server {name!r}, and not for that of --server"
        raise outside_node("--server").error(why, "leave out --server", kind="host")
    database: str | None = None
    with suppress(InputError):
        database = database_of(hosts.scope(name, "."), name, known[name].node)
    return NamedServer(hosts.server(name, folder), database)


def database_of(scope: TemplateScope, host: str, node: SourceNode) -> str:
    """Return the media database on a host, as the templates of a scope see it; raises :class:`InputError`."""
    variable = scope.variables.winners.get("database")
    if variable is None:
        remedy = "add database: to the play, or to the host's variables"
        raise node.error(f"no media database is set for {host}", remedy, kind="missing-key")
    name = render_shown(variable.value, scope, variable.node)
    if not isinstance(name, str) or not name.strip():
        raise variable.node.error("the name of a media database must be text", "quote it")
    return name


# The server: block of a host, with secrets from files and the keyring

_SECRET_KEYS: Final = ("password", "bearer", "key_password")
_PLAIN_KEYS: Final = {
    "url", "version", "timezone", "connections", "requests_per_second", "request_line", "timeouts", "dialect"
}  # fmt: skip


def _build_server(
    name: str,
    data: dict[str, Any],
    node: SourceNode,
    scope: TemplateScope,
    transport: Transport | None,
) -> ServerSpec:
    """Return the server of a host; raises :class:`InputError` with all problems of its block."""
    misplaced = misplaced_secrets(data, _may_hold_secret)
    if misplaced:
        raise InputError(
            [node.child(*path).problem(why, remedy) for path, why, remedy in misplaced]
        )
    args = read_as(ServerArgs, data, node)
    plain = args.model_dump(include=_PLAIN_KEYS, exclude_none=True)
    flag = ""
    if node.document.file == "--server":
        flag = f" --server {args.url}"
    auth = Auth()
    if args.auth:
        auth = _auth(args.auth, name, node.child("auth"), scope.surroundings)
    tls = Tls()
    if args.tls:
        tls = _tls(args.tls, node.child("tls"))
    return ServerSpec(
        name=name,
        flag=flag,
        auth=auth,
        tls=tls,
        timeouts=Timeouts(**plain.pop("timeouts", {})),
        frame_rates=args.frame_rate or (),
        dialect=Dialect(**plain.pop("dialect", {})),
        worker=_worker(scope),
        transport=transport,
        **plain,
    )


def _may_hold_secret(path: DataPath) -> bool:
    return path[:1] == ("auth",) or path[-1:] in {("password",), ("key_password",)}


def _worker(scope: TemplateScope) -> Mapping[str, float]:
    """Return the resources that a Dask worker needs to reach the server: the variable ``worker`` of the host."""
    variable = scope.variables.winners.get("worker")
    if variable is None:
        return {}
    remedy = "write worker: {site-oslo: 1}, the --resources of the Dask workers at its site"
    resources = render_data(variable.value, scope, variable.node)
    if not isinstance(resources, dict) or not resources:
        raise variable.node.error(
            "worker must map names of resources to amounts", remedy, kind="wrong-type"
        )
    for name, amount in resources.items():
        node = variable.node.child(name)
        if not re.fullmatch(r"[A-Za-z0-9_.-]+", name):
            raise node.error(f"{name!r} is not a valid name of a resource", remedy, key=True)
        is_number = isinstance(amount, int | float) and not isinstance(amount, bool)
        if not is_number or not 0 < amount < float("inf"):
            raise node.error(
                f"the amount of {name} must be a number above 0, not {amount!r}", remedy
            )
    return {str(name): float(amount) for name, amount in resources.items()}


def _server_secrets(data: Any, node: SourceNode) -> Iterator[str]:
    """Yield the secrets in rendered ``auth`` or ``tls`` that can be redacted, also those in files.

    What is unknown is left out.
    """
    for path, value in leaves(data):
        if not path or not _is_known_text(value):
            continue
        text = str(value)
        key = str(path[-1])
        if key.endswith("_file") and key.removesuffix("_file") in _SECRET_KEYS:
            try:
                text = secret_of("file", text, "", node.child(*path)).reveal()
            except InputError:  # reported when the server is needed
                continue
        elif key not in _SECRET_KEYS and path[0] != "headers":
            continue
        if can_redact(text) and text != HIDDEN:
            yield text


def _auth(args: AuthArgs, name: str, node: SourceNode, here: LookupContext) -> Auth:
    username = password = None
    if args.basic:
        username = args.basic.username
        password = _secret(args.basic, "password", username or "", node.child("basic"), here)
    headers = [(header, Secret(value)) for header, value in (args.headers or {}).items()]
    return Auth(
        username=username,
        password=password,
        bearer=_secret(args, "bearer", name, node, here),
        headers=tuple(headers),
    )


def _secret(
    args: Model, key: str, user: str, node: SourceNode, here: LookupContext
) -> Secret | None:
    """Return a secret from its text, its file beside the inventory, the keyring entry of a user, or a command."""
    if (name := getattr(args, f"{key}_secret")) is not None:
        return _printed_secret(name, node.child(f"{key}_secret"), here)
    for source in ("file", "keyring"):
        if (name := getattr(args, f"{key}_{source}")) is not None:
            return secret_of(source, name, user, node.child(f"{key}_{source}"))
    text = getattr(args, key)
    if text is None:
        return None
    return Secret(text)


def _printed_secret(name: str, node: SourceNode, here: LookupContext) -> Secret:
    """Return the secret that a command of the settings prints; raises :class:`InputError`."""
    try:
        return Secret(here.secret(name))
    except TemplateFunctionError as error:
        raise node.error(str(error), error.remedy, kind=error.kind) from None


def _tls(args: TlsArgs, node: SourceNode) -> Tls:
    paths: dict[str, PlacedPath] = {}
    for key in ("ca", "cert", "key"):
        name = getattr(args, key)
        if name is None:
            continue
        place = node.child(key)
        path = PlacedPath(beside(node.document.file, name))
        path.place = str(place.place)
        _check_inside(str(path), place)
        paths[key] = path
    password = None if args.key_password is None else Secret(args.key_password)
    return Tls(verify=args.verify is not False, key_password=password, **paths)


def _check_inside(path: str, node: SourceNode) -> None:
    """Raise for a link in a repository that leads out of it; a path elsewhere is the choice of who names it."""
    if leads_out(Path(path), ()):
        raise node.error(
            f"{path}: a link leads out of the repository", "name the file itself", kind="file"
        )


def secret_of(source: str, name: str, user: str, node: SourceNode) -> Secret:
    """Return the secret in a file beside the document, or of a user in the keyring; raises :class:`InputError`."""
    try:
        if source == "keyring":
            return Secret(secret_in_keyring(name, user))
        path = beside(node.document.file, name)
        _check_inside(path, node)
        return Secret(secret_in_file(Path(path), name))
    except MsautoError as error:
        raise node.error(error.message, error.remedy, kind="secret") from None
