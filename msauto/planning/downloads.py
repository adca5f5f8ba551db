"""Files that are fetched: two downloads into one file are an error of both of their targets."""

from __future__ import annotations

import os.path
from collections.abc import Iterator, Sequence

from msgspec import structs

from msauto.model.plan import Request, Target


def without_conflicts(targets: Sequence[Target]) -> tuple[Target, ...]:
    """Return the targets; those of which a download would overwrite another one's carry that as their error."""
    writers: dict[str, list[tuple[int, str]]] = {}
    for number, target in enumerate(targets):
        for request in _downloads(target):
            writers.setdefault(os.path.normpath(request.dest or ""), []).append((number, _place(target, request)))
    errors: dict[int, str] = {}
    for dest, those in writers.items():
        if len(those) > 1:
            errors |= {number: _words(dest, those, targets) for number, _ in those}
    return tuple(
        structs.replace(target, changes=(), requests=(), error=errors[number]) if number in errors else target
        for number, target in enumerate(targets)
    )


def _downloads(target: Target) -> Iterator[Request]:
    return (request for request in target.requests if request.dest is not None)


def _place(target: Target, request: Request) -> str:
    return str(target.changes[request.changes[0]].source.place)


def _words(dest: str, those: Sequence[tuple[int, str]], targets: Sequence[Target]) -> str:
    shown = [f"{targets[number].server} {targets[number].name!r} ({place})" for number, place in those[:2]]
    more = f" and {len(those) - 2} more" if len(those) > 2 else ""
    return (
        f"{those[0][1]}: {len(those)} downloads would write the file {dest}: {' and '.join(shown)}{more}\n"
        "  → name a file for each, with {{ asset.title }} or {{ inventory_hostname }} in dest"
    )
