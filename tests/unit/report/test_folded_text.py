"""The folded plan as text: the picture of a large plan, widths, ASCII, timelines, names."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from msauto.model.plan import Change, Json, Plan, Refusal, ShownMarker, ShownSegment, Target, TargetContext
from msauto.report.clip_timeline import ASCII, UNICODE, draw_timeline, timeline_of
from msauto.report.layout import Layout, Line, TextSpan, render_lines, words
from msauto.report.sanitizing import display_width, show, visible
from tests.unit.report.made_plans import PAL, change, check_golden, film, plan_of, text_of


def marker(frame: int, title: str = "Ad break", track: str = "Cue Point") -> Change:
    after: Json = {"frame": frame, "track": track, "title": title}
    return change("add", "marker", f"{track}@{frame}", None, after)


def comment(text: str, before: str = "") -> Change:
    return change("change", "field", "comment", before, text)


def clip(name: str, *changes: Change, folder: str = "Series/Night Shift", **more: Any) -> Target:
    context = more.pop("context", TargetContext(67500))
    return Target("studio-a", "NEWS", "asset", name, folder, rate=PAL, changes=changes, context=context, **more)


def long_film() -> Target:
    part_1: dict[str, Json] = {"number": 1, "start": 0, "duration": 60000, "title": "Part 1"}
    part_2: dict[str, Json] = {"number": 2, "start": 63000, "duration": 60000, "title": "Part 2"}
    cue: dict[str, Json] = {"uid": 2, "frame": 123000, "track": "Cue Point", "comment": ""}
    return clip(
        "Long Film",
        change("change", "segment", "1", part_1, part_1 | {"duration": 63000}),
        change("change", "segment", "2", part_2, part_2 | {"duration": 99500}),
        change("delete", "segment", "3", {"number": 3, "start": 123000, "duration": 39500}, losses=1),
        change("delete", "marker", "uid 1", {"uid": 1, "frame": 60000, "track": "Cue Point"}, losses=1),
        change("change", "marker", "uid 2", cue, cue | {"comment": "short"}),
        marker(61000),
        folder="Films",
        context=TargetContext(162500, (), (ShownMarker(8, 30000, "General"),)),
    )


def everything() -> Plan:
    """The plan of the issue: 300 clips get the same marker, some something else, one is deleted."""
    episodes = [clip(f"EP{number:03}", marker(33750)) for number in range(1, 298)]
    others = [clip(name, marker(33750)) for name in ("Вечерние новости 21.11", "夜のニュース 21", "Derby 🏆 Special")]
    shows = [clip(f"Show {n}", comment(f"Ready {n}", f"raw {n}"), marker(100)) for n in range(40)]
    promo = clip("Promo 7 – Weekend", comment("Ready for air"), folder="Promos")
    warnings = tuple(f"studio-a: EP{number:03}: the comment is long" for number in range(1, 5))
    refusal = Refusal("delete_assets", 0, 1, "--allow-delete 1")
    return plan_of(*episodes, *others, long_film(), promo, *shows, film(), refusals=(refusal,), warnings=warnings)


@pytest.mark.parametrize(("width", "ascii_only"), [(80, False), (120, False), (60, True)])
def test_a_large_plan_reads_as_agreed(width: int, ascii_only: bool) -> None:
    name = f"folded-{width}{'-ascii' if ascii_only else ''}.txt"
    check_golden(name, text_of(everything(), width=width, ascii_only=ascii_only))


def test_a_summary_is_counts_deletions_and_refusals() -> None:
    check_golden("folded-summary.txt", text_of(everything(), summary=True))


def test_a_plan_of_distinct_changes_is_cut_and_the_last_line_says_so() -> None:
    aspects = ("comment", "user_0", "user_1", "user_2", "layer")
    distinct = [
        clip(f"C{7 * n}", *(change("change", "field", name, f"{n}", f"new {n}") for place, name in enumerate(aspects)
                            if n % (place + 2)))
        for n in range(1, 5000)
    ]  # fmt: skip
    text = text_of(plan_of(*distinct), width=80)
    assert text.count("\n") <= 430
    assert re.search(r"^4\d\d\d targets not shown: -v shows them$", text, re.MULTILINE)
    assert " not shown" not in text_of(plan_of(*distinct[:40]), width=80)


def test_every_deletion_is_named_however_many_there_are() -> None:
    plan = plan_of(*(structs.replace(film(), name=f"Promo {7 * number}") for number in range(500)))
    for summary in (False, True):
        text = text_of(plan, summary=summary)
        assert all(f" · Promo {7 * number}  in Promos" in text for number in range(500))


# Width ---------------------------------------------------------------------------------------------------------

TEXT = st.text('ab 日é👩🏽\u200d"→,', max_size=12) | st.text("x日", min_size=100, max_size=130)


@settings(max_examples=40)
@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=4), st.integers(60, 140), st.booleans())
def test_no_line_is_wider_than_asked(texts: list[tuple[str, str]], width: int, ascii_only: bool) -> None:
    targets = [clip(name or "x", comment(value), change("add", "link", f"{name}/{value}", None, value), folder=value)
               for name, value in texts]  # fmt: skip
    deleted = structs.replace(film(), name=texts[0][0], folder=texts[0][1])
    errors = [structs.replace(clip(name), error=value or "no") for name, value in texts]
    plan = plan_of(*targets, deleted, *errors, warnings=tuple(value for _, value in texts))
    lines = text_of(plan, width=width, ascii_only=ascii_only).splitlines()
    assert max(map(display_width, lines)) <= width


@given(st.lists(TEXT.map(visible), max_size=6), st.integers(60, 100))
def test_wrapping_keeps_every_sign(texts: list[str], width: int) -> None:
    line = Line(tuple(TextSpan(f"{text} ") for text in texts))
    shown = "".join(render_lines([line], Layout(width=width)))
    assert re.sub(r"\s", "", shown) == re.sub(r"\s", "", "".join(texts))


def test_no_word_is_broken_that_fits_on_a_line() -> None:
    text = " ".join(["word" * n for n in range(1, 14)])
    shown = "".join(render_lines([words(text)], Layout(width=60)))
    assert shown.split() == text.split()


def test_quotes_keep_what_came_from_outside_in_ascii() -> None:
    plan = plan_of(clip("A → B", comment("x → y"), folder="C · D"))
    text = text_of(plan, ascii_only=True)
    assert 'studio-a / NEWS / "A → B"  in "C · D"' in text
    assert '"" -> "x → y"' in text


# Timelines -----------------------------------------------------------------------------------------------------


def test_a_timeline_shows_what_stays_and_what_goes() -> None:
    timeline = timeline_of(long_film())
    assert timeline is not None
    assert draw_timeline(timeline, 42, UNICODE) == [
        ("before", "├1━━━━━━•━━━━━━×┬2━━━━━━━━━━━━━~3━━━━━━━━┤"),
        ("after", "├1━━━━━━•━━━━━━━+2━━━━━━━━━━━━━~━━━━━━━━━┤"),
    ]
    assert draw_timeline(timeline, 42, ASCII)[1] == ("after", "[1======o=======+2=============~=========]")


def test_only_additions_have_one_row() -> None:
    context = TargetContext(1000, (ShownSegment(1, 0, 500),), (ShownMarker(3, 750, "General"),))
    timeline = timeline_of(clip("A", marker(250), context=context))
    assert timeline is not None
    assert draw_timeline(timeline, 22, UNICODE) == [("after", "├1────+────┄┄┄┄┄•┄┄┄┄┤")]


def test_a_segmentation_is_drawn_piece_by_piece() -> None:
    grid: Json = {"duration": 300, "pieces": 4}
    target = clip("A", change("add", "segmentation", "300", None, grid), context=TargetContext(1000))
    timeline = timeline_of(target)
    assert timeline is not None
    assert draw_timeline(timeline, 42, UNICODE) == [("after", "├1━━━━━━━━━━━┬2━━━━━━━━━━┬3━━━━━━━━━━┬4━━┤")]


@pytest.mark.parametrize("context", [None, TargetContext(None), TargetContext(0)])
def test_without_a_length_there_is_no_timeline(context: TargetContext | None) -> None:
    assert timeline_of(clip("A", marker(1), context=context)) is None
    assert timeline_of(clip("A", comment("x"))) is None


# Emoji ---------------------------------------------------------------------------------------------------------


def test_skin_tones_and_joiners_belong_to_their_emoji() -> None:
    assert display_width("👍🏽") == 2
    assert display_width("👩🏽\u200d🚀") == 2
    assert show("👩\u200d🚀 launch") == "👩\u200d🚀 launch"
    assert show("a\u200db") == r'"a\u200db"'
    assert show("👩\u200d") == r'"👩\u200d"'


@pytest.mark.parametrize(
    ("title", "shown"), [("Wait…", '"Wait…"'), ("A ━ B", "A ━ B"), ("EP1…EP9 (9)", '"EP1…EP9 (9)"')]
)
def test_a_title_keeps_the_signs_of_reports(title: str, shown: str) -> None:
    plan = plan_of(structs.replace(film(), name=title))
    assert f"- studio-b · ARCHIVE · {shown}  in Promos" in text_of(plan, width=120)
    assert f"- studio-b / ARCHIVE / {shown}  in Promos" in text_of(plan, width=120, ascii_only=True)
