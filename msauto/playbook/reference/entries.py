"""What the reference is made of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReferenceEntry:
    """A filter, test, lookup, fact or variable: ``example`` is an expression, ``result`` what it gives, as text."""

    name: str
    words: str
    example: str = ""
    result: str = ""


@dataclass(frozen=True, slots=True)
class ReferenceKey:
    """A key of a module or play: ``path`` such as ``segments[].start``; ``kind`` what its value may be."""

    path: str
    kind: str
    words: str
    needed: bool = False
    template: bool = True


@dataclass(frozen=True, slots=True)
class ReferenceTopic:
    """A module, a play or a task: what it is for, its keys, and examples as YAML that together use every key."""

    name: str
    words: str
    keys: tuple[ReferenceKey, ...]
    examples: tuple[str, ...]
