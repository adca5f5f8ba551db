"""Targets whose changes are of the same things but of other values: a table, in which every value is shown."""

from __future__ import annotations

import re
from collections import Counter
from html import unescape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from msauto.model.plan import Plan, Target
from msauto.plugins.pages import html
from msauto.report import markdown, texts
from msauto.report.layout import Layout, in_ascii, render_lines, value_table
from msauto.report.sanitizing import display_width
from tests.examples import examples
from tests.unit.report.made_plans import change, check_golden, episode, plan_of, text_of

SERVERS = ("bergen", "oslo", "tromso")


def promo(name: str, server: str, values: dict[str, tuple[str, str]]) -> Target:
    changes = (change("change", "field", key, old, new) for key, (old, new) in values.items())
    return structs.replace(
        episode(),
        name=name,
        server=server,
        folder="Promos",
        changes=tuple(changes),
        requests=(),
        emptied=(),
    )


def promos(count: int) -> Plan:
    """A CSV of promos for three servers, in which not every value is new."""

    def values(number: int) -> dict[str, tuple[str, str]]:
        every = {
            "comment": (f"Week {46 + number % 2}", f"Week {48 + number}"),
            "user_0": ("Kanal 5", "Kanal 7"),
            "user_1": ("", "news" if number % 2 else "Sport | 日本"),
        }
        return {
            key: value for place, (key, value) in enumerate(every.items()) if (number + place) % 4
        }

    return plan_of(
        *(
            promo(f"PROMO {n:03}", server, values(n))
            for server in SERVERS
            for n in range(1, count + 1)
        )
    )


@pytest.mark.parametrize("width", [80, 120])
def test_a_table_reads_as_agreed(width: int) -> None:
    text = text_of(promos(30), width=width)
    check_golden(f"table-{width}.txt", text)
    heading = 2 if width == 80 else 1
    assert len(text.partition("\n\n")[0].splitlines()) == heading + 32


def test_a_table_that_does_not_fit_is_a_list() -> None:
    wide = [
        promo(
            f"P {n}",
            "oslo",
            {f"user_{place}": ("earlier", f"later, number {n}") for place in range(8)},
        )
        for n in range(3)
    ]
    check_golden("table-list-80.txt", text_of(plan_of(*wide), width=80))


def test_a_table_in_markdown_reads_as_agreed() -> None:
    check_golden("table.md", "".join(markdown.render_plan(promos(5))))


VALUES = st.text('ab 日é"→,|`<&\n', max_size=30)


@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["comment", "layer", "user_0", "user_1"]),
            st.tuples(VALUES, VALUES),
            min_size=1,
        ),
        min_size=3,
        max_size=30,
    ),
    st.integers(60, 140),
)
def test_every_value_is_shown(rows: list[dict[str, tuple[str, str]]], width: int) -> None:
    plan = plan_of(*(promo(f"P{place}", SERVERS[place % 2], row) for place, row in enumerate(rows)))
    page = "".join(html.render_plan(plan)).partition('<script type="application/json"')[0]
    forms = {
        "text": text_of(plan, width=100_000),
        "markdown": unescape("".join(markdown.render_plan(plan))),
        "html": unescape(re.sub("<[^>]*>", "", page)),
    }
    values: list[str] = []
    for target in plan.targets:
        for each in target.changes:
            values += map(str, texts.change_parts(each, target))
    for name, form in forms.items():
        for value in values:
            assert value in form, name
    assert max(map(display_width, text_of(plan, width=width).splitlines())) <= width


CELLS = st.text('ab 日→"', max_size=60).map(lambda text: " ".join(text.split()))


@given(
    st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=5),
    st.integers(60, 120),
    st.booleans(),
)
def test_cells_are_whole_however_narrow_the_table_is(
    rows: list[tuple[str, ...]], width: int, ascii_only: bool
) -> None:
    layout = Layout(width=width, ascii_only=ascii_only)
    table = [["", "one", "two"], *(list(row) for row in rows)]
    shown = list(render_lines(value_table(table, layout), layout))
    assert max(display_width(line.rstrip("\n")) for line in shown) <= width
    cells = "".join(in_ascii(cell) if ascii_only else cell for row in rows for cell in row)
    assert not Counter(re.sub(r"\s", "", cells)) - Counter("".join(shown))


def test_a_row_names_servers_only_where_these_are_not_all() -> None:
    values = {"comment": ("", "Week 48"), "user_0": ("", "x")}
    targets = []
    for number in range(12):
        for server in SERVERS[: 2 + number % 2]:
            row = {**values, "comment": ("", f"Week 48 of {number}")}
            targets.append(promo(f"PROMO {number:03}", server, row))
    page = text_of(plan_of(*targets), width=80)
    assert page.startswith("bergen, oslo, tromso · NEWS · 30 assets with changes of the same")
    assert '  PROMO 000 (bergen, oslo)  "" → "Week 48 of 0"\n' in page
    assert re.search(r'^  PROMO 001 +"" → "Week 48 of 1"$', page, flags=re.MULTILINE)
    assert "tromso" not in page.partition("\n")[2]
