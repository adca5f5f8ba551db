"""``serial``, ``max_fail_percentage`` and ``any_errors_fatal``: the servers of plays in batches, as in Ansible.

Consecutive plays without these keys are one batch. The first play that names a target decides its batch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import structs

from msauto.documents.document import Problems, SourceNode
from msauto.documents.value_types import as_list
from msauto.model.desired import Batch
from msauto.playbook.schema.play import BatchKeys
from msauto.playbook.schema.schema_errors import read_as

_NUMBER = re.compile(r"[0-9]{1,18}")
_PERCENT = re.compile(r"(\d{1,3}(?:\.\d+)?)\s*%")


@dataclass(frozen=True, slots=True)
class BatchSizes:
    """The batch keys of a play. ``serial`` holds counts (int) or shares (float); the last one repeats."""

    serial: tuple[int | float, ...] = ()
    max_fail: float | None = None
    fatal: bool = False


def read_batch_sizes(data: Mapping[str, Any], node: SourceNode) -> BatchSizes:
    """Return the batch sizes of a play from rendered data; raises :class:`InputError` with all that is wrong."""
    args = read_as(BatchKeys, data, node)
    here = node.child("serial")
    problems = Problems()
    serial: list[int | float] = []
    for index, value in enumerate([] if args.serial is None else as_list(args.serial)):
        with problems.gather():
            serial.append(_size(value, here.child(index) if isinstance(args.serial, list) else here))
    if args.max_fail_percentage is not None and args.max_fail_percentage > 100:
        place = node.child("max_fail_percentage")
        problems.add(place.problem("max_fail_percentage must be at most 100", "use a value from 0 to 100"))
    problems.check()
    return BatchSizes(tuple(serial), args.max_fail_percentage, bool(args.any_errors_fatal))


def _size(value: int | str, node: SourceNode) -> int | float:
    """Return a count of servers as an int, a share of them as a float."""
    text = str(value).strip()
    percent = _PERCENT.fullmatch(text)
    if percent is not None and 0 < float(percent[1]) <= 100:
        return float(percent[1]) / 100
    if _NUMBER.fullmatch(text):
        return int(text)
    raise node.error(f"serial must be a number of servers or a percentage, not {text[:40]!r}", 'for example 2 or "30%"')


def divide(hosts: Sequence[str], serial: Sequence[int | float]) -> list[tuple[str, ...]]:
    """Return the hosts in batches; 0 means all remaining hosts.

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
        self._plain = False  # whether the last batch is of plays without batch keys

    def add(self, play: str, hosts: Sequence[str], sizes: BatchSizes) -> dict[str, int]:
        """Add a play; return the number of each host's batch."""
        plain = sizes == BatchSizes()  # all servers are one batch, and a failed server stops no other
        if plain and self._plain:
            last = self._found[-1]
            self._found[-1] = structs.replace(last, servers=tuple(dict.fromkeys((*last.servers, *hosts))))
            return dict.fromkeys(hosts, len(self._found) - 1)
        self._plain = plain
        numbers: dict[str, int] = {}
        for servers in divide(hosts, sizes.serial):
            numbers |= dict.fromkeys(servers, len(self._found))
            self._found.append(Batch(play, servers, sizes.max_fail, sizes.fatal))
        return numbers

    def all(self) -> tuple[Batch, ...]:
        """Return all batches; none if no play has batch keys."""
        return () if self._plain and len(self._found) == 1 else tuple(self._found)
