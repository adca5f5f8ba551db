"""Folding a plan: what belongs together is together, and nothing is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from msauto.aspects import is_deletion
from msauto.model.plan import Basis, Change, Plan, Target
from msauto.model.snapshot import Json
from msauto.report.plan_view import OWN_TITLE, Block, PlanView, shown_blocks, view_plan
from msauto.report.sanitizing import NameRange, name_ranges
from msauto.report.texts import WHOLE
from tests.examples import examples
from tests.unit.report.made_plans import PAL, change, film, lost, plan_of


def marker(frame: int, title: str = "Ad break") -> Change:
    after: Json = {"frame": frame, "track": "Cue Point", "title": title}
    return change("add", "marker", f"Cue Point@{frame}", None, after)


def clip(name: str, *changes: Change, server: str = "studio-a", **more: object) -> Target:
    return structs.replace(
        Target(server, "NEWS", "asset", name, "Series", rate=PAL),
        changes=changes or (marker(750),),
        **more,
    )


def episodes(count: int, server: str = "studio-a") -> list[Target]:
    return [clip(f"EP{number:03}", server=server) for number in range(1, count + 1)]


def test_targets_that_change_alike_are_one_block_from_three_on() -> None:
    assert [block.level for block in view_plan(plan_of(*episodes(2))).blocks] == ["alone", "alone"]
    (block,) = view_plan(plan_of(*episodes(3))).blocks
    assert (block.level, len(block.targets), [row.same for row in block.rows]) == (
        "alike",
        3,
        [True],
    )


def test_one_list_item_that_differs_is_in_a_table_from_ten_on() -> None:
    ready = change("change", "field", "comment", "", "Ready")
    targets = [clip(f"EP{number}", marker(750 + number), ready) for number in range(10)]
    assert len(view_plan(plan_of(*targets[:9])).blocks) == 9
    (block,) = view_plan(plan_of(*targets)).blocks
    assert [(row.heading, row.same) for row in block.rows] == [
        ("+ marker Cue Point", False),
        ("comment", True),
    ]


@pytest.mark.parametrize(
    "changes",
    [
        lambda n: (marker(n, f"Break {n}"), marker(n + 1)),
        lambda n: (
            change("delete", "marker", f"uid {n}", {"frame": 1, "track": "General"}, losses=1),
        ),
        lambda n: (change("change", "field", "comment", f"{n}", "", losses=1),),
    ],
)
def test_what_differs_in_more_or_is_removed_is_shown_in_full(
    changes: Callable[[int], tuple[Change, ...]],
) -> None:
    blocks = view_plan(
        plan_of(*(clip(f"EP{number}", *changes(number)) for number in range(20)))
    ).blocks
    assert [block.level for block in blocks] == ["alone"] * 20


def valued(name: str, server: str = "studio-a", **fields: str) -> Target:
    return clip(
        name,
        *(change("change", "field", key, "", value) for key, value in fields.items()),
        server=server,
    )


def cells_of(block: Block) -> list[tuple[str, list[str]]]:
    return [
        (line.label, [cell.text(WHOLE) if cell else "" for cell in line.cells])
        for line in block.lines
    ]


def test_changes_of_the_same_things_are_a_table_from_three_different_ones_on() -> None:
    targets = [
        valued("A", comment="1"),
        valued("B", comment="2", layer="x"),
        valued("C", layer="x"),
    ]
    assert [block.level for block in view_plan(plan_of(*targets[:2])).blocks] == ["alone"] * 2
    (block,) = view_plan(plan_of(*targets)).blocks
    assert block.title == "studio-a · NEWS · 3 assets with changes of the same things"
    assert [row.heading for row in block.columns] == ["comment", "layer"]
    assert cells_of(block) == [
        ("A", ['"" → "1"', ""]),
        ("B", ['"" → "2"', '"" → "x"']),
        ("C", ["", '"" → "x"']),
    ]


def test_what_loses_something_is_in_no_table() -> None:
    def retitled(number: int, losses: int = 0) -> Change:
        before: dict[str, Json] = {
            "uid": 1,
            "frame": 5,
            "track": "General",
            "title": f"Old {number}",
        }
        return change(
            "change", "marker", "uid 1", before, before | {"title": f"New {number}"}, losses=losses
        )

    targets = [clip(f"EP{number}", retitled(number, losses=number % 2)) for number in range(20)]
    blocks = view_plan(plan_of(*targets)).blocks
    assert Counter(block.level for block in blocks) == {"table": 1, "alone": 10}
    assert all(target.changes[0].losses == 0 for target in blocks[0].targets)


def test_what_has_nothing_in_common_is_no_table() -> None:
    apart = [valued("A", comment="1"), valued("B", layer="2"), valued("C", user_0="3")]
    assert [block.level for block in view_plan(plan_of(*apart)).blocks] == ["alone"] * 3


def test_the_same_on_several_servers_is_one_line() -> None:
    targets = [
        valued(f"P{number}", server, comment=f"{number}")
        for server in ("a", "b", "c")
        for number in range(5)
    ]
    (block,) = view_plan(plan_of(*targets)).blocks
    assert [line.label for line in block.lines] == [f"P{number}" for number in range(5)]
    (block,) = view_plan(plan_of(*targets[:-1], valued("P4", "c", comment="other"))).blocks
    assert [line.label for line in block.lines][3:] == [
        "P3",
        "P4 (a, b)",
        "P4 (c)",
    ]


def test_many_titles_with_the_same_changes_are_no_lines_of_a_table() -> None:
    same = [valued(f"EP{number}", comment="Ready") for number in range(10)]
    others = [valued(f"P{number}", comment=f"{number}") for number in range(3)]
    blocks = view_plan(plan_of(*same, *others)).blocks
    assert [(block.level, len(block.targets)) for block in blocks] == [("alike", 10), ("table", 3)]
    (block,) = view_plan(plan_of(*same[:9], *others)).blocks
    assert (block.level, len(block.table)) == ("table", 12)


def test_a_long_table_is_in_parts_that_are_left_out_one_by_one() -> None:
    blocks = view_plan(
        plan_of(*(valued(f"P{number}", comment=f"{number}") for number in range(501)))
    ).blocks
    assert [len(block.table) for block in blocks] == [84, 84, 84, 84, 84, 81]
    shown, left = shown_blocks(blocks)
    assert (len(shown), left) == (4, 165)


def test_notes_are_beside_a_column_or_where_they_differ_in_the_cells() -> None:
    basis: tuple[Basis, ...] = ("ledger", "ledger", "none")
    targets = [
        clip(f"P{place}", change("change", "field", "layer", None, f"{place}", each))
        for place, each in enumerate(basis)
    ]
    (block,) = view_plan(plan_of(*targets)).blocks
    assert [text for _, (text,) in cells_of(block)] == [
        '(nothing) → "0" (not reported by the server; last value written by msauto)',
        '(nothing) → "1" (not reported by the server; last value written by msauto)',
        '(unknown) → "2" (not reported by the server; earlier value unknown)',
    ]
    alike = [
        clip(f"P{place}", change("change", "field", "layer", None, f"{place}", "none"))
        for place in range(3)
    ]
    (block,) = view_plan(plan_of(*alike)).blocks
    assert block.columns[0].notes == "not reported by the server; earlier value unknown"
    assert cells_of(block)[0] == ("P0", ['(unknown) → "0"'])


def test_links_named_like_their_assets_are_the_same_change() -> None:
    targets = [clip(name, change("add", "link", f"Tonight/{name}", None, {"folder": "Tonight", "title": name}))
               for name in ("Film", "Promo", "News")]  # fmt: skip
    (block,) = view_plan(plan_of(*targets)).blocks
    assert block.rows[0].example[1].key == f"Tonight/{OWN_TITLE}"


def test_a_table_keeps_the_order_of_the_plan() -> None:
    targets = [valued(f"EP{number:03}", comment=f"{number % 6}") for number in range(12)]
    (block,) = view_plan(plan_of(*targets)).blocks
    assert block.targets == tuple(targets)


def test_the_frame_rate_separates_where_it_shows() -> None:
    targets = [
        structs.replace(each, rate=PAL * (1 + place % 2)) for place, each in enumerate(episodes(6))
    ]
    assert len(view_plan(plan_of(*targets)).blocks) == 2
    at_the_start = [structs.replace(each, changes=(marker(0),)) for each in targets]
    assert len(view_plan(plan_of(*at_the_start)).blocks) == 1
    comment = change("change", "field", "comment", "", "Ready")
    assert (
        len(
            view_plan(
                plan_of(*(structs.replace(each, changes=(comment,)) for each in targets))
            ).blocks
        )
        == 1
    )


def test_the_same_on_several_servers_is_one_block() -> None:
    (block,) = view_plan(
        plan_of(*episodes(3), *episodes(3, "studio-b"), clip("Film", server="studio-b"))
    ).blocks
    assert [(each.servers, each.ranges) for each in block.named] == [
        (("studio-a",), (NameRange("EP001", "EP003", 3),)),
        (("studio-b",), (NameRange("EP001", "EP003", 3), NameRange("Film", "Film", 1))),
    ]


def test_many_changes_of_one_target_are_all_shown() -> None:
    blocks = view_plan(plan_of(clip("Film", *map(marker, range(500))))).blocks
    assert [len(block.rows) for block in blocks] == [500]
    assert shown_blocks(blocks) == (list(blocks), 0)


def test_what_is_removed_is_shown_however_long_the_plan_is() -> None:
    gone = change("delete", "marker", "uid 1", {"frame": 1, "track": "General"}, losses=1)
    targets = [clip(f"EP{7 * n}", *map(marker, range(n, n + 20))) for n in range(50)]
    blocks = view_plan(plan_of(*targets, clip("Film", gone))).blocks
    shown, left = shown_blocks(blocks)
    assert len(shown) + left == 51
    assert 0 < left < 50
    assert shown[-1].targets[0].name == "Film"


def test_a_target_in_error_is_no_block_and_its_error_is_grouped() -> None:
    wrong = [
        structs.replace(lost(), name=name, error=f"no asset '{name}'\n  → x")
        for name in ("A", "B1", "C")
    ]
    view = view_plan(plan_of(*wrong, lost(), structs.replace(lost(), name="Other", error="no")))
    assert view.blocks == ()
    assert [(each.error.partition("\n")[0], len(each.targets)) for each in view.errors] == [
        (f"no asset '{OWN_TITLE}'", 3),
        ((lost().error or "").partition("\n")[0], 1),
        ("no", 1),
    ]


def test_counts_name_each_aspect() -> None:
    counts = view_plan(plan_of(*episodes(3), film())).counts
    assert [tuple(each) for each in counts] == [("marker", 3, 0, 0, 0, 3), ("asset", 0, 0, 1, 0, 1)]


# Nothing is lost -----------------------------------------------------------------------------------------------

CHANGES = st.one_of(
    st.builds(marker, st.integers(0, 3)),
    st.sampled_from(
        [
            change("change", "field", "comment", "a", "b"),
            change("change", "field", "comment", "a", "Film 1"),
            change("change", "field", "comment", "a", "c"),
            change("change", "field", "layer", None, "c", "none"),
            change("delete", "asset", "x", {}, reversible=False),
            change("delete", "link", "Tonight/x", "Tonight/x"),
            change("run", "command", "PARTNER_EXPORT_VERSION", None, {}),
        ]
    ),
)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    targets = [
        structs.replace(clip(name), changes=changes, server=server)
        for name, changes, server in draw(
            st.lists(
                st.tuples(
                    st.from_regex(r"(EP0?|Film )[0-9]{1,2}", fullmatch=True),
                    st.lists(CHANGES, min_size=1, max_size=3).map(tuple)
                    | st.lists(CHANGES, min_size=10, max_size=12).map(tuple),
                    st.sampled_from(["studio-a", "studio-b"]),
                ),
                max_size=20,
            )
        )
    ]
    return plan_of(*targets)


def described(view: PlanView) -> Iterator[tuple[str, str, bytes]]:
    pairs = [pair for block in view.blocks for row in block.rows for pair in row.changes]
    return (
        (target.server, target.name, repr(each).encode())
        for target, each in (*pairs, *view.deletions)
    )


def planned(plan: Plan) -> Iterator[tuple[str, str, bytes]]:
    return (
        (target.server, target.name, repr(each).encode())
        for target in plan.targets
        for each in target.changes
    )


@settings(max_examples=examples(100))
@given(plans())
def test_folding_loses_no_change_and_folds_no_deletion(plan: Plan) -> None:
    for folded in (True, False):
        view = view_plan(plan, folded=folded)
        assert Counter(described(view)) == Counter(planned(plan))
        assert sum(is_deletion(each) for target in plan.targets for each in target.changes) == len(
            view.deletions
        )
        assert not any(
            is_deletion(each)
            for block in view.blocks
            for row in block.rows
            for _, each in row.changes
        )


@settings(max_examples=examples(100))
@given(plans())
def test_names_of_blocks_are_exact(plan: Plan) -> None:
    for block in view_plan(plan).blocks:
        assert Counter(named(block)) == Counter(
            (target.server, target.name) for target in block.targets
        )


def named(block: Block) -> Iterator[tuple[str, str]]:
    if block.level == "alone":
        assert block.heading.endswith(f"{block.targets[0].database} · {block.targets[0].name}")
        yield block.targets[0].server, block.targets[0].name
    for servers, _, ranges, _ in block.named:
        for server in servers:
            yield from ((server, name) for each in ranges for name in expand(each))


def expand(names: NameRange) -> Iterator[str]:
    """Count up from the first name as a reader would."""
    if names.size == 1:
        yield names.first
        return
    end = next(
        place for place in range(len(names.first), -1, -1) if names.first[:place][-1:].isdigit()
    )
    start = len(names.first[:end].rstrip("0123456789"))
    digits = names.first[start:end]
    for number in range(int(digits), int(digits) + names.size):
        yield f"{names.first[:start]}{number:0{len(digits)}}{names.first[end:]}"


@given(st.lists(st.from_regex(r"(EP|Film ?)?0{0,2}[0-9]{0,3}( raw)?", fullmatch=True), max_size=60))
def test_ranges_hold_every_name_and_no_other(names: list[str]) -> None:
    ranges = name_ranges(names)
    assert Counter(name for each in ranges for name in expand(each)) == Counter(names)
    assert all(list(expand(each))[-1] == each.last for each in ranges)


@pytest.mark.parametrize(
    ("names", "ranges"),
    [
        (["EP1", "EP2"], [("EP1", "EP1", 1), ("EP2", "EP2", 1)]),
        (["EP8", "EP9", "EP10"], [("EP8", "EP10", 3)]),
        (["EP08", "EP09", "EP10", "EP12"], [("EP08", "EP10", 3), ("EP12", "EP12", 1)]),
        (["EP1", "EP02", "EP3"], [("EP1", "EP1", 1), ("EP02", "EP02", 1), ("EP3", "EP3", 1)]),
        (["Ep 3 raw", "Ep 1 raw", "Ep 2 raw"], [("Ep 1 raw", "Ep 3 raw", 3)]),
        (["A1", "A1", "A2", "A3"], [("A1", "A3", 3), ("A1", "A1", 1)]),
    ],
)
def test_only_complete_ranges_are_ranges(
    names: list[str], ranges: list[tuple[str, str, int]]
) -> None:
    assert [tuple(each) for each in name_ranges(names)] == ranges


def test_changes_with_characters_that_utf8_cannot_encode_are_grouped() -> None:
    lone = change("change", "field", "comment", "\ud800", "a")
    targets = [structs.replace(film(), name=name, changes=(lone,)) for name in ("A", "B", "C")]
    (block,) = view_plan(plan_of(*targets)).blocks
    assert len(block.targets) == 3
