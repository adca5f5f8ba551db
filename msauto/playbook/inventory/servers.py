"""The servers of an inventory, for commands without a playbook."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from msauto.documents.document import Problems, nearest, outside_node
from msauto.errors import InputError
from msauto.model.server import ServerSpec
from msauto.playbook.input_files import Files
from msauto.playbook.inventory.hosts import Hosts, same_servers
from msauto.playbook.resolve import ResolveOptions, open_hosts
from msauto.playbook.templates.rendering import render_data
from msauto.secrets.redaction import Secrets


@dataclass(frozen=True, slots=True)
class NamedServer:
    """A server and the media database of its host variables; ``None`` if unset, or if it needs a playbook."""

    spec: ServerSpec
    database: str | None


def named_servers(options: ResolveOptions, secrets: Secrets | None = None) -> tuple[NamedServer, ...]:
    """Return the servers that ``--limit`` matches; raises :class:`InputError` with all problems.

    ``secrets`` receives those of the inventory, and where they come from.
    """
    problems, files = Problems(), Files()
    if secrets is not None:
        files.taint.found = secrets
    found: list[NamedServer] = []
    with files.taint.found.redacted_errors():
        hosts = open_hosts(options, files)
        with problems.gather():
            limit = hosts.limit(options.limit)
            names = [name for name in hosts.inventory.hosts if name in limit]
            found += [NamedServer(hosts.server(name, "."), _database(hosts, name)) for name in names]
            problems.add(*same_servers(hosts, names))
        problems.check()
    return tuple(found)


def servers_called(options: ResolveOptions, names: Collection[str], folder: str = ".") -> tuple[ServerSpec, ...]:
    """Return servers by name, as a play in this folder sees them; raises :class:`InputError` for a missing one.

    Other servers of the inventory are ignored: their secrets need not be set.
    """
    problems, files = Problems(), Files()
    found: list[ServerSpec] = []
    with files.taint.found.redacted_errors():
        hosts = open_hosts(options, files)
        for name in dict.fromkeys(names):
            with problems.gather():
                if name not in hosts.inventory.hosts:
                    message = f"the plan is for the server {name!r}, which the inventory does not have"
                    raise outside_node("inventory").error(message, nearest(name, hosts.inventory.hosts), kind="host")
                found.append(hosts.server(name, folder))
        problems.add(*same_servers(hosts, [spec.name for spec in found]))
        problems.check()
    return tuple(found)


def _database(hosts: Hosts, name: str) -> str | None:
    scope = hosts.scope(name, ".")
    variable = scope.variables.winner("database")
    if variable is None:
        return None
    try:
        value = render_data(variable.value, scope, variable.node)
    except InputError:
        return None
    return value if isinstance(value, str) else None
