"""The cheapest pairing of two lists: the Hungarian method, exact, for any number of rows and columns."""

from __future__ import annotations

from collections.abc import Sequence

EXACT = 400
"""Above this many rows the pairing is greedy: just as many pairs, not always the cheapest ones."""


def pair(cost: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Return pairs (row, column), as many as the shorter side has, with the least total cost.

    >>> pair([[4, 1], [2, 0], [3, 2]])
    [(0, 1), (1, 0)]
    """
    if not cost or not cost[0]:
        return []
    if len(cost) > len(cost[0]):
        turned = [[row[column] for row in cost] for column in range(len(cost[0]))]
        return sorted((row, column) for column, row in pair(turned))
    return _greedy(cost) if len(cost) > EXACT else _hungarian(cost)


def _greedy(cost: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    free = set(range(len(cost[0])))
    pairs = []
    for row, costs in enumerate(cost):
        column = min(free, key=lambda c: (costs[c], c))
        free.remove(column)
        pairs.append((row, column))
    return pairs


def _hungarian(cost: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Kuhn's method with potentials, rows <= columns; rows and columns count from 1, 0 stands for none."""
    rows, columns = len(cost), len(cost[0])
    row_potential, column_potential = [0] * (rows + 1), [0] * (columns + 1)
    row_of = [0] * (columns + 1)
    for row in range(1, rows + 1):
        row_of[0], at = row, 0
        least, way = [10**30] * (columns + 1), [0] * (columns + 1)
        used, free = [], list(range(1, columns + 1))
        while row_of[at]:  # the cheapest way from this row to a free column
            used.append(at)
            for column in free:
                slack = cost[row_of[at] - 1][column - 1] - row_potential[row_of[at]] - column_potential[column]
                if slack < least[column]:
                    least[column], way[column] = slack, at
            at = min(free, key=least.__getitem__)
            delta = least[at]
            for column in used:
                row_potential[row_of[column]] += delta
                column_potential[column] -= delta
            for column in free:
                least[column] -= delta
            free.remove(at)
        while at:
            row_of[at] = row_of[way[at]]
            at = way[at]
    return sorted((row - 1, column - 1) for column, row in enumerate(row_of) if row and column)
