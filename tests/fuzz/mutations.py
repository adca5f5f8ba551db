"""Changed files: what a broken or a hostile program makes of a good one. The same seed gives the same file."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Final

TOKENS: Final[tuple[bytes, ...]] = (
    b"",
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"-1",
    b"0",
    b"9" * 400,
    b"1e400000000",
    b"1e-400000000",
    b"NaN",
    b"Infinity",
    b"\xd9\xa3",
    b"25/0",
    b"99:99:99:99",
    b"00:00:00;00",
    b"24:00",
    b"../../etc/passwd",
    b"<",
    b"<a>",
    b"</a>",
    b"<!DOCTYPE a [<!ENTITY b 'c'>]>",
    b"&#0;",
    b"&b;",
    b"<![CDATA[",
    b' xmlns:p="q"',
    b"{",
    b"[",
    b'"',
    b"'",
    b": ",
    b"&anchor ",
    b"*anchor",
    b"!!python/object ",
    b"{{ 9**9**9 }}",
    b"{% for x in range(10**9) %}",
    b" --> ",
    b"\r",
    b"\xe2\x80\xa8",
    b"a\xcc\x81" * 200,
    b"\xf0\x9f\x91\xa9\xe2\x80\x8d" * 50,
)
"""What is inserted, or takes the place of a part."""
_MOST_BYTES: Final = 2_000_000


def cut_out(data: bytes, chance: random.Random) -> bytes:
    """Leave out a part."""
    start, end = _span(data, chance)
    return data[:start] + data[end:]


def end_early(data: bytes, chance: random.Random) -> bytes:
    """End in the middle."""
    return data[: chance.randrange(len(data) + 1)]


def replace(data: bytes, chance: random.Random) -> bytes:
    """Put another token in the place of a part."""
    start, end = _span(data, chance)
    return data[:start] + chance.choice(TOKENS) + data[end:]


def flip(data: bytes, chance: random.Random) -> bytes:
    """Change a few bytes."""
    changed = bytearray(data)
    for _ in range(chance.randint(1, 8)):
        if changed:
            changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed)


def repeat(data: bytes, chance: random.Random) -> bytes:
    """Repeat a part, often very often."""
    start, end = _span(data, chance)
    part = data[start:end]
    most = max(1, _MOST_BYTES // max(1, len(part)))
    times = min(chance.choice((2, 10, 1_000, 100_000)), most)
    return data[:start] + part * times + data[end:]


def nest(data: bytes, chance: random.Random) -> bytes:
    """Open something very often at one place."""
    place = chance.randrange(len(data) + 1)
    opened = chance.choice(
        (b"<a>", b"[", b"{a: ", b"(", b"'", b"<Folder name='x'>", b"- ", b"{{", b"\n ")
    )
    return data[:place] + opened * chance.choice((10, 1_000, 50_000)) + data[place:]


MUTATIONS: Final[Sequence[Callable[[bytes, random.Random], bytes]]] = (
    cut_out,
    end_early,
    replace,
    flip,
    repeat,
    nest,
)


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Return a changed file."""
    for _ in range(chance.randint(1, 3)):
        data = chance.choice(MUTATIONS)(data, chance)[:_MOST_BYTES]
    return data


def _span(data: bytes, chance: random.Random) -> tuple[int, int]:
    start = chance.randrange(len(data) + 1)
    return start, min(len(data), start + chance.choice((1, 4, 30, 300)))
