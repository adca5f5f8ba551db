"""``serial``, ``max_fail_percentage`` and ``any_errors_fatal``: the servers of plays in batches, by Ansible's rules.

Plays without any of them that follow one another are one batch. Where several plays speak of one target, the first of
them decides in which batch it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import structs

from msauto.model.desired import Batch
from msauto.playbook.schema.play import BatchKeys
from msauto.playbook.schema.validation import read_as
from msauto.playbook.schema.values import as_list
from msauto.playbook.yaml.document import Problems, SourceNode

_NUMBER = re.compile(r"[0-9]{1,18}")
_PERCENT = re.compile(r"(\d{1,3}(?:\.\d+)?)\s*%")


@dataclass(frozen=True, slots=True)
class BatchSizes:
    """How a play goes through its servers; ``serial`` are numbers or percentages, the last one repeated."""

    serial: tuple[int | float, ...] = ()
    max_fail: float | None = None
    fatal: bool = False

    @property
    def plain(self) -> bool:
        """All servers at once, and a failed one stops no other."""
        return self == BatchSizes()


def read_pace(data: Mapping[str, Any], node: SourceNode) -> BatchSizes:
    """Return the pace of a play, its templates rendered; raises :class:`InputError` with all that is wrong."""
    named = {name: data[name] for name in ("serial", "max_fail_percentage", "any_errors_fatal") if name in data}
    args = read_as(BatchKeys, named, node)
    here = node.child("serial")
    listed = isinstance(args.serial, list)
    sizes = [] if args.serial is None else as_list(args.serial)
    problems = Problems()
    serial: list[int | float] = []
    for index, size in enumerate(sizes):
        with problems.gather():
            serial.append(_size(size, here.child(index) if listed else here))
    if args.max_fail_percentage is not None and args.max_fail_percentage > 100:
        place = node.child("max_fail_percentage")
        problems.add(place.problem("max_fail_percentage must be at most 100", "use a value from 0 to 100"))
    problems.check()
    return BatchSizes(tuple(serial), args.max_fail_percentage, bool(args.any_errors_fatal))


def _size(value: int | str, node: SourceNode) -> int | float:
    """Return a number of servers as an int, a share of them as a float."""
    text = str(value).strip()
    percent = _PERCENT.fullmatch(text)
    if percent is not None and 0 < float(percent[1]) <= 100:
        return float(percent[1]) / 100
    if _NUMBER.fullmatch(text):
        return int(text)
    raise node.error(f"serial must be a number of servers or a percentage, not {text[:40]!r}", 'for example 2 or "30%"')


def divide(hosts: Sequence[str], serial: Sequence[int | float]) -> list[tuple[str, ...]]:
    """Return the hosts in batches; 0 means all that are left.

    >>> divide(["a", "b", "c", "d", "e"], [1, 0.5])
    [('a',), ('b', 'c'), ('d', 'e')]
    """
    found: list[tuple[str, ...]] = []
    start = 0
    while start < len(hosts):
        size = serial[min(len(found), len(serial) - 1)] if serial else 0
        count = size if isinstance(size, int) else max(1, int(size * len(hosts)))
        end = start + count if count else len(hosts)
        found.append(tuple(hosts[start:end]))
        start = end
    return found


class Batches:
    """The batches of a run, numbered from 0 in the order of the plays."""

    def __init__(self) -> None:
        self._found: list[Batch] = []
        self._plain = False  # the last batch is that of plays without a pace

    def add(self, play: str, hosts: Sequence[str], pace: BatchSizes) -> dict[str, int]:
        """Add a play; return the number of each host's batch."""
        if not hosts:
            return {}
        if pace.plain and self._plain:
            last = self._found[-1]
            self._found[-1] = structs.replace(last, servers=tuple(dict.fromkeys((*last.servers, *hosts))))
            return dict.fromkeys(hosts, len(self._found) - 1)
        self._plain = pace.plain
        numbers: dict[str, int] = {}
        for servers in divide(hosts, pace.serial):
            numbers |= dict.fromkeys(servers, len(self._found))
            self._found.append(Batch(play, servers, pace.max_fail, pace.fatal))
        return numbers

    def all(self) -> tuple[Batch, ...]:
        """Return all batches; none where no play says anything about its pace."""
        return () if self._plain and len(self._found) == 1 else tuple(self._found)
