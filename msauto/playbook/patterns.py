"""Host patterns: ``host``, ``group``, globs, ``a:b`` or ``a,b`` (union), ``a:&b`` (both), ``a:!b`` (but not).

``--limit`` may also name files: ``@failed.txt`` stands for the hosts in its lines.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Mapping, Sequence

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
    return _match(split(pattern), pattern, hosts, groups)


def split(pattern: str) -> list[str]:
    """Return the parts of a pattern."""
    return [part.strip() for part in re.split(r"[,:]", pattern) if part.strip()]


def match_limit(
    pattern: str, hosts: Sequence[str], groups: Mapping[str, Sequence[str]], read: Callable[[str], str]
) -> list[str]:
    """Return the hosts that ``--limit`` means; ``read`` returns the text of a file named with ``@``."""
    parts = [part for each in split(pattern) for part in _from_file(each, read)]
    return _match(parts, pattern, hosts, groups)


def _from_file(part: str, read: Callable[[str], str]) -> list[str]:
    """Return a part, or, of a file, a part for each of its lines with the sign in front of the ``@``."""
    sign, name = (part[0], part[1:]) if part[0] in "&!" else ("", part)
    if not name.startswith("@"):
        return [part]
    lines = [line.partition("#")[0].strip() for line in read(name[1:]).splitlines()]
    named = [line for line in lines if line]
    if not named:
        raise PatternError(f"the file {name[1:]} names no host", "write one host, group or glob in each line")
    if sign == "&":
        raise PatternError("a file cannot stand behind &", "name the file, and & the group")
    return [sign + each for line in named for each in split(line)]


def _match(parts: Sequence[str], pattern: str, hosts: Sequence[str], groups: Mapping[str, Sequence[str]]) -> list[str]:
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
