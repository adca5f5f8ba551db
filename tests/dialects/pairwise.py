"""A pairwise-covering set: few rows in which every two values of every two parameters meet at least once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations, product
from random import Random

Row = dict[str, str]
Value = tuple[str, str]
Pair = frozenset[Value]


def pairwise(
    parameters: Mapping[str, Sequence[str]],
    seed: int = 0,
    possible: Callable[[Row], bool] = lambda _: True,
) -> list[Row]:
    """Return the rows, the same each time for one seed; greedy, so a few more than the least possible.

    Each row begins with a pair that no row has yet, then takes, parameter by parameter, the value with which most
    new pairs are met. ``possible`` returns whether a part of a row can occur: pairs that cannot are left out.
    """
    missing = dict.fromkeys(
        pair for pair in all_pairs(parameters) if possible(dict(pair))
    )  # a set, in order
    rows: list[Row] = []
    while missing:
        row = dict(sorted(next(iter(missing))))
        for name in Random(1000 * seed + len(rows)).sample(list(parameters), len(parameters)):
            if name not in row:
                values = [value for value in parameters[name] if possible(row | {name: value})]
                row[name] = _best(name, values, row, missing, len(rows))
        for pair in pairs_of(row):
            missing.pop(pair, None)
        rows.append({name: row[name] for name in parameters})
    return rows


def all_pairs(parameters: Mapping[str, Sequence[str]]) -> Iterable[Pair]:
    """Yield every two values of every two parameters."""
    for one, other in combinations(parameters, 2):
        for value, another in product(parameters[one], parameters[other]):
            yield frozenset({(one, value), (other, another)})


def pairs_of(row: Row) -> Iterable[Pair]:
    """Yield the pairs that meet in a row."""
    return map(frozenset, combinations(row.items(), 2))


def _best(
    name: str, values: Sequence[str], row: Row, missing: Mapping[Pair, None], turn: int
) -> str:
    turned = [
        values[(index + turn) % len(values)] for index in range(len(values))
    ]  # else ties favour the first
    return max(
        turned,
        key=lambda value: sum(
            frozenset({(name, value), sourced}) in missing for sourced in row.items()
        ),
    )
