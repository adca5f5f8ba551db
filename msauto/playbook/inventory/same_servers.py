"""Hosts that are one server: its targets would be planned twice, so no run takes both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msauto.errors import Problem
from msauto.interface.server_url import server_key
from msauto.playbook.inventory.hosts import Hosts, ServerAddress

_REMEDY = "use one host, and name the media databases with `database:` of the play, a block or the task"


def same_servers(hosts: Hosts, names: Iterable[str]) -> Iterator[Problem]:
    """Yield a problem for each of the hosts whose server another of them is as well, by their URLs.

    A URL that cannot be known here (a secret that is not set) is left out.
    """
    first: dict[str, ServerAddress] = {}
    for name in names:
        address = hosts.address(name)
        if address is not None:
            one = first.setdefault(server_key(address.url), address)
            if one is not address:
                yield _problem(one, address)


def _problem(one: ServerAddress, other: ServerAddress) -> Problem:
    of_group = one.node.place == other.node.place  # both have it from there, and the hosts are what differs
    first = one.host.key_place if of_group else one.node.place
    urls = one.url if one.url == other.url else f"{one.url} and {other.url}"
    message = f"the hosts {one.name!r} ({first}) and {other.name!r} are one server: {urls}"
    return (other.host if of_group else other.node).problem(message, _REMEDY, key=of_group)
