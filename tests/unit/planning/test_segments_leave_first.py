"""Segments that are written over go in an order in which none takes a place that another still holds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from msauto.aspects.segment_frames import Span, free_first

lengths = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9)), max_size=8)


def spans(gaps_and_lengths: list[tuple[int, int]]) -> list[Span]:
    found, end = [], 0
    for gap, length in gaps_and_lengths:
        found.append((end + gap, end + gap + length))
        end += gap + length
    return found


def overlap(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]


@given(lengths, lengths, st.randoms(use_true_random=False))
def test_nothing_overlaps_on_the_way(
    old: list[tuple[int, int]], new: list[tuple[int, int]], random: object
) -> None:
    # Segments keep their order in the clip, as in any recut: then there always is a way.
    moves = list(zip(spans(old), spans(new), strict=False))
    random.shuffle(moves)  # type: ignore[attr-defined]
    live = [move[0] for move in moves]
    order = free_first(moves)
    assert sorted(order) == list(range(len(moves)))
    for index in order:
        live[index] = moves[index][1]
        assert not any(
            overlap(live[index], span) for other, span in enumerate(live) if other != index
        )


def test_the_order_is_kept_where_nothing_is_in_the_way() -> None:
    assert free_first([((20, 30), (20, 25)), ((0, 10), (0, 10)), ((40, 50), (60, 70))]) == [0, 1, 2]


def test_a_swap_ends() -> None:
    assert sorted(free_first([((0, 10), (10, 20)), ((10, 20), (0, 10))])) == [0, 1]


def test_many_in_a_chain() -> None:
    moves = [((start, start + 10), (start + 5, start + 15)) for start in range(0, 200_000, 10)]
    assert free_first(moves) == list(range(len(moves) - 1, -1, -1))
