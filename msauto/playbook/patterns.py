"""Host patterns: ``host``, ``group``, globs, ``a:b`` or ``a,b`` (union), ``a:&b`` (both), ``a:!b`` (but not)."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence

from msauto.playbook.document import nearest

_GLOB = re.compile(r"[*?\[]")


class PatternError(ValueError):
    """A pattern that names what is not there; ``remedy`` names what is."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


def match_hosts(pattern: str, hosts: Sequence[str], groups: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the hosts that a pattern means, in the order of the inventory; raises :class:`PatternError`.

    Ansible's order: unions first, then ``&``, then ``!``, wherever they stand.
    """
    parts = [part.strip() for part in re.split(r"[,:]", pattern) if part.strip()]
    if not parts:
        raise PatternError("the host pattern is empty", "write all, a host, or a group")
    named = [part for part in parts if part[0] not in "&!"]
    chosen = set(hosts) if not named else {host for part in named for host in _named(part, hosts, groups)}
    for part in parts:
        if part[0] == "&":
            chosen &= _named(part[1:], hosts, groups)
        elif part[0] == "!":
            chosen -= _named(part[1:], hosts, groups)
    if not chosen:
        raise PatternError(f"the pattern {pattern!r} matches no host", _there_is(hosts, groups))
    return [host for host in hosts if host in chosen]


def _named(name: str, hosts: Sequence[str], groups: Mapping[str, Sequence[str]]) -> set[str]:
    if not _GLOB.search(name):
        if name in groups:
            return set(groups[name])
        if name in hosts:
            return {name}
        hint = nearest(name, [*hosts, *groups])
        raise PatternError(f"there is no host or group {name!r}", hint)
    found = {host for host in hosts if fnmatch.fnmatchcase(host, name)}
    for group, members in groups.items():
        if fnmatch.fnmatchcase(group, name) and (group != "all" or name == "*"):  # a* does not mean everybody
            found.update(members)
    if not found:
        raise PatternError(f"{name!r} matches no host or group", _there_is(hosts, groups))
    return found


def _there_is(hosts: Sequence[str], groups: Mapping[str, Sequence[str]]) -> str:
    return nearest("", [*hosts, *groups])
