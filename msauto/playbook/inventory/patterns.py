"""Host patterns as in Ansible: ``host``, ``group``, globs, ``~regex``, and hosts of a group by index.

``a:b`` or ``a,b`` (union), ``a:&b`` (intersection), ``a:!b`` (difference); ``group[0]``, ``group[-1]``, ``group[0:3]``
(includes the fourth), ``group[2:]``. A regular expression matches from the beginning of a name. ``--limit`` also has
``@failed.txt``: the hosts in the lines of a file.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Mapping, Sequence

from msauto.documents.document import nearest

_GLOB = re.compile(r"[*?\[]")
_PART = re.compile(r"(?:\[[^\]]*\]|\([^()]*\)|\{[^}]*\}|[^,:])+")
"""A part of a pattern, which may contain commas and colons in brackets."""
_INDEX = re.compile(r"(.+)\[(?:(-?\d{1,9})|(\d{1,9})[:-](\d{0,9}))\]")


class PatternError(ValueError):
    """A pattern that is invalid or matches nothing; ``remedy`` suggests another."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


def match_hosts(pattern: str, hosts: Sequence[str], groups: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the hosts that a pattern matches, in the order of the inventory; raises :class:`PatternError`.

    As in Ansible, unions come first, then ``&``, then ``!``, in any order of the parts.
    """
    return _match(split(pattern), pattern, hosts, groups)


def split(pattern: str) -> list[str]:
    """Return the parts of a pattern."""
    return [part.strip() for part in _PART.findall(pattern) if part.strip()]


def match_limit(
    pattern: str, hosts: Sequence[str], groups: Mapping[str, Sequence[str]], read: Callable[[str], bytes]
) -> list[str]:
    """Return the hosts that ``--limit`` matches; ``read`` returns a file given as ``@file``."""
    parts = [part for each in split(pattern) for part in _from_file(each, read)]
    return _match(parts, pattern, hosts, groups)


def _from_file(part: str, read: Callable[[str], bytes]) -> list[str]:
    """Return a part; for a file, a part for each of its lines, with the ``!`` of the file."""
    sign, name = (part[0], part[1:]) if part[0] in "&!" else ("", part)
    if not name.startswith("@"):
        return [part]
    lines = [line.partition("#")[0].strip() for line in read(name[1:]).decode("utf-8-sig", "replace").splitlines()]
    named = [line for line in lines if line]
    if not named:
        raise PatternError(f"the file {name[1:]} contains no host", "write one host, group or glob in each line")
    if sign == "&":
        raise PatternError("a file cannot follow &", "write the file first, then & and the group")
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
        raise PatternError(f"the pattern {pattern!r} matches no host", nearest("", [*hosts, *groups]))
    return [host for host in hosts if host in chosen]


def _named(name: str, hosts: Sequence[str], groups: Mapping[str, Sequence[str]]) -> set[str]:
    names = [*hosts, *groups]
    index = _INDEX.fullmatch(name)

    def globbed(glob: str) -> set[str]:
        return _matching(lambda each: fnmatch.fnmatchcase(each, glob), glob == "*", hosts, groups)

    if name.startswith("~"):
        from jinja2.exceptions import SecurityError

        from msauto.playbook.templates.filters.strings import pattern as compiled_regex

        try:
            regex = compiled_regex(name[1:], max(names, key=len, default=""))
        except (ValueError, SecurityError) as error:
            raise PatternError(str(error), "use a simpler one, in Python's syntax") from error
        found = _matching(lambda each: regex.match(each) is not None, name == "~all", hosts, groups)
    elif index is not None and (":" in name or index[1] in names or globbed(index[1]) or not globbed(name)):
        return _by_index(index, name, hosts, groups)
    elif _GLOB.search(name):
        found = globbed(name)
    elif name in names:
        return set(groups.get(name, (name,)))
    else:
        raise PatternError(f"unknown host or group {name!r}", nearest(name, names))
    if not found:
        raise PatternError(f"{name!r} matches no host or group", nearest("", names))
    return found


def _matching(
    matches: Callable[[str], bool], of_all: bool, hosts: Sequence[str], groups: Mapping[str, Sequence[str]]
) -> set[str]:
    """Return the hosts that match, and those of groups that match; ``a*`` and ``~a`` do not match the group all."""
    found = {host for host in hosts if matches(host)}
    return found.union(*(groups[each] for each in groups if matches(each) and (each != "all" or of_all)))


def _by_index(index: re.Match[str], name: str, hosts: Sequence[str], groups: Mapping[str, Sequence[str]]) -> set[str]:
    """Return the hosts of a group or glob by index; a range includes both ends."""
    found = _named(index[1], hosts, groups)
    listed = [host for host in hosts if host in found]
    if index[2] is not None:
        first = int(index[2])
        chosen = listed[first : first + 1 or None]
    else:
        chosen = listed[int(index[3]) : int(index[4]) + 1 if index[4] else None]
    if not chosen:
        count = f"{len(listed)} host{'s' if len(listed) != 1 else ''}"
        raise PatternError(f"the pattern {name!r} matches no host", f"{index[1]} has {count}, counted from 0")
    return set(chosen)
