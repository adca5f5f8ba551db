"""The servers of an inventory by themselves, for commands that play no playbook."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from msauto.errors import InputError
from msauto.model.server import ServerSpec
from msauto.playbook.files import Files
from msauto.playbook.inventory.hosts import Hosts
from msauto.playbook.inventory.same_servers import same_servers
from msauto.playbook.resolve import ResolveOptions, open_hosts
from msauto.playbook.templates.environment import render_data
from msauto.playbook.yaml.document import Problems, nearest, outside_node


@dataclass(frozen=True, slots=True)
class NamedServer:
    """A server, and the media database that its host variables name (``None``: none, or one that needs a playbook)."""

    spec: ServerSpec
    database: str | None


def named_servers(options: ResolveOptions) -> tuple[NamedServer, ...]:
    """Return the servers that ``--limit`` leaves; raises :class:`InputError` with all that is wrong."""
    problems, files = Problems(), Files(mib=options.file_mib)
    found: list[NamedServer] = []
    with files.taint.found.redacted_errors():
        hosts = open_hosts(options, files)
        with problems.gather():
            limit = hosts.limit(options.limit)
            found.extend(_named(hosts, limit))
            problems.add(*same_servers(hosts, [name for name in hosts.inventory.hosts if name in limit]))
        problems.check()
    return tuple(found)


def servers_called(options: ResolveOptions, names: Collection[str]) -> tuple[ServerSpec, ...]:
    """Return the servers of these names, for a plan that was saved; raises :class:`InputError` for one that is missing.

    The others of the inventory are not looked at: their secrets need not be there.
    """
    problems, files = Problems(), Files(mib=options.file_mib)
    with files.taint.found.redacted_errors():
        return _called(open_hosts(options, files), names, problems)


def _called(hosts: Hosts, names: Collection[str], problems: Problems) -> tuple[ServerSpec, ...]:
    found: list[ServerSpec] = []
    for name in dict.fromkeys(names):
        with problems.gather():
            if name not in hosts.inventory.hosts:
                hint = nearest(name, hosts.inventory.hosts)
                raise outside_node("inventory").error(f"the plan is for the server {name!r}, which is not there", hint)
            found.append(hosts.server(name, "."))
    problems.add(*same_servers(hosts, [spec.name for spec in found]))
    problems.check()
    return tuple(found)


def _named(hosts: Hosts, limit: frozenset[str]) -> Iterator[NamedServer]:
    for name in hosts.inventory.hosts:
        if name in limit:
            yield NamedServer(hosts.server(name, "."), _database(hosts, name))


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
