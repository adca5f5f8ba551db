"""The folded plan as text: the picture of a large plan, widths, ASCII, timelines, names."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from msauto.model.plan import Change, Plan, Refusal, Target, TargetContext
from msauto.model.snapshot import Json
from msauto.report.clip_timeline import ASCII, Timeline, draw_timeline, legend_of, timeline_of
from msauto.report.layout import Layout, Line, TextSpan, render_lines, words
from msauto.report.sanitizing import display_width, show, visible
from tests.examples import examples
from tests.shown_items import shown_marker, shown_segment
from tests.unit.report.made_plans import PAL, change, check_golden, film, plan_of, text_of


def marker(frame: int, title: str = "Ad break", track: str = "Cue Point") -> Change:
    after: Json = {"frame": frame, "track": track, "title": title}
    return change("add", "marker", f"{track}@{frame}", None, after)


def drawn(timeline: Timeline, width: int) -> list[str]:
    return [str(row) for row in draw_timeline(timeline, width)]


def comment(text: str, before: str = "") -> Change:
    return change("change", "field", "comment", before, text)


def clip(name: str, *changes: Change, folder: str = "Series/Night Shift", **more: Any) -> Target:
    context = more.pop("context", TargetContext(67500))
    return Target(
        "studio-a",
        "NEWS",
        "asset",
        name,
        folder,
        rate=PAL,
        changes=changes,
        context=context,
        **more,
    )


def long_film() -> Target:
    part_1: dict[str, Json] = {"number": 1, "start": 0, "duration": 60000, "title": "Part 1"}
    part_2: dict[str, Json] = {"number": 2, "start": 63000, "duration": 60000, "title": "Part 2"}
    cue: dict[str, Json] = {"uid": 2, "frame": 123000, "track": "Cue Point", "comment": ""}
    return clip(
        "Long Film",
        change("change", "segment", "1", part_1, part_1 | {"duration": 63000}),
        change("change", "segment", "2", part_2, part_2 | {"duration": 99500}),
        change(
            "delete", "segment", "3", {"number": 3, "start": 123000, "duration": 39500}, losses=1
        ),
        change(
            "delete", "marker", "uid 1", {"uid": 1, "frame": 60000, "track": "Cue Point"}, losses=1
        ),
        change("change", "marker", "uid 2", cue, cue | {"comment": "short"}),
        marker(61000),
        folder="Films",
        context=TargetContext(162500, (shown_marker(8, 30000, "General"),)),
    )


def everything() -> Plan:
    """The plan of the issue: 300 clips get the same marker, some something else, one is deleted."""
    episodes = [clip(f"EP{number:03}", marker(33750)) for number in range(1, 298)]
    others = [
        clip(name, marker(33750))
        for name in ("Вечерние новости 21.11", "夜のニュース 21", "Derby 🏆 Special")
    ]
    shows = [clip(f"Show {n}", comment(f"Ready {n}", f"raw {n}"), marker(100)) for n in range(40)]
    promo = clip("Promo 7 – Weekend", comment("Ready for air"), folder="Promos")
    warnings = tuple(f"studio-a: EP{number:03}: the comment is long" for number in range(1, 5))
    refusal = Refusal("delete_assets", 0, 1, "--allow-delete 1")
    return plan_of(
        *episodes,
        *others,
        long_film(),
        promo,
        *shows,
        film(),
        refusals=(refusal,),
        warnings=warnings,
    )


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
    assert re.search(r"^4\d\d\d targets not shown: -v shows them$", text.splitlines()[-1])
    assert " not shown" not in text_of(plan_of(*distinct[:40]), width=80)


def test_every_deletion_is_named_however_many_there_are() -> None:
    plan = plan_of(*(structs.replace(film(), name=f"Promo {7 * number}") for number in range(500)))
    for summary in (False, True):
        text = text_of(plan, summary=summary)
        named = set(re.findall(r"Promo \d+(?=, | in Promos)", " ".join(text.split())))
        assert len(named) == 500


def test_60_deletions_on_3_servers_are_read_in_one_look() -> None:
    titles = [f"A promo of some length {7 * number}" for number in range(20)]
    gone = []
    for title in titles:
        for server in ("bergen", "oslo", "tromso"):
            gone.append(structs.replace(film(), name=title, server=server))
    apart = [structs.replace(target, name=f"{target.name} of {target.server}") for target in gone]
    for targets in (gone, apart):
        text = text_of(plan_of(*targets), width=80)
        _, _, listed = text.partition("60 assets are deleted")
        listed, _, _ = listed.partition("\n\n")
        assert listed.count("\n") < 40
        assert max(map(len, listed.splitlines())) <= 80
        flowing = " ".join(listed.split())
        assert all(target.name in flowing for target in targets)
    shared = text_of(plan_of(*gone[:30]))
    assert shared.count("bergen, oslo, tromso · ARCHIVE · A promo of some length") == 10


def gone_of(server: str, number: int, folder: str = "Raw", **more: Any) -> Target:
    """An asset that is deleted; ``more`` is known of it."""
    facts = {"folder": folder, "frames": 250, "create_time": "2026-11-13T10:00:00", **more}
    deletion = change("delete", "asset", "", facts, reversible=False)
    return structs.replace(
        film(),
        name=f"Promo {7 * number}",
        server=server,
        folder=folder,
        places=(),
        changes=(deletion,),
    )


def test_a_deletion_is_listed_in_its_own_folder_on_each_server() -> None:
    targets = []
    for number in range(12):
        targets.append(gone_of("oslo", number))
        folder = "Archive" if number % 2 else "Raw"
        targets.append(gone_of("bergen", number, folder))
    flowing = " ".join(text_of(plan_of(*targets), width=80).split())
    assert "6: Promo 0, Promo 14, Promo 28, Promo 42, Promo 56, Promo 70 in Raw -" in flowing
    assert "Promo 63, Promo 77 in Raw (oslo), in Archive (bergen)" in flowing


def test_equal_titles_that_are_not_alike_on_all_servers_stay_on_one_line() -> None:
    targets = []
    for minute, server in enumerate(("oslo", "bergen", "tromso")):
        for number in range(10):
            targets.append(gone_of(server, number, create_time=f"2026-11-13T10:0{minute}:00"))
    text = text_of(plan_of(*targets), width=80)
    assert text.count("oslo, bergen, tromso · ARCHIVE · Promo") == 10
    flowing = " ".join(text.split())
    assert "created 2026-11-13T10:00:00 (oslo), created 2026-11-13T10:01:00 (bergen)" in flowing
    assert text.count("\n") < 50


def test_a_clip_that_links_show_is_apart_in_a_long_list_of_deletions() -> None:
    targets = [gone_of("oslo", number) for number in range(12)]
    targets[3] = structs.replace(targets[3], places=("Playout/Tonight/Promo 21",))
    flowing = " ".join(text_of(plan_of(*targets)).split())
    assert "- oslo · ARCHIVE · Promo 21 in Raw" in flowing
    assert "also shown as Playout/Tonight/Promo 21" in flowing


def test_titles_with_commas_are_told_apart_in_a_list_of_deletions() -> None:
    gone = [structs.replace(film(), name=f"A, B {7 * number}") for number in range(30)]
    assert '"A, B 7", "A, B 14"' in text_of(plan_of(*gone), width=1000)


# Width ---------------------------------------------------------------------------------------------------------

TEXT = st.text('ab 日é👩🏽\u200d"→,', max_size=12) | st.text("x日", min_size=100, max_size=130)


@settings(max_examples=examples(100))
@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=4), st.integers(60, 140), st.booleans())
def test_no_line_is_wider_than_asked(
    texts: list[tuple[str, str]], width: int, ascii_only: bool
) -> None:
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


def test_a_change_that_does_not_fit_is_broken_at_its_arrow() -> None:
    pair = TextSpan("duration 00:40:00:00 (60000) → 00:42:00:00 (63000), ")
    shown = "".join(
        render_lines(
            [Line((TextSpan("~ segment  "), pair, TextSpan("title x")), 11)], Layout(width=50)
        )
    )
    assert shown.splitlines() == [
        "~ segment  duration 00:40:00:00 (60000)",
        "           → 00:42:00:00 (63000), title x",
    ]


def test_quotes_keep_what_came_from_outside_in_ascii() -> None:
    plan = plan_of(clip("A → B", comment("x → y"), folder="C · D"))
    text = text_of(plan, ascii_only=True)
    assert 'studio-a / NEWS / "A → B"  in "C · D"' in text
    assert '"" -> "x → y"' in text


def removals(count: int) -> list[Target]:
    """So many targets, each of which loses something."""
    gone: list[Change] = [
        change(
            "delete",
            "marker",
            "uid 1",
            {"uid": 1, "frame": 100, "track": "General", "comment": "w" * 500},
        ),
        change(
            "delete",
            "segment",
            "3",
            {"number": 3, "start": 100, "duration": 50, "title": "Rest"},
            losses=1,
        ),
        change(
            "delete", "link", "Playout/Tonight", {"folder": "Playout", "title": "Tonight"}, losses=1
        ),
        change("delete", "rss_item", "n-1", {"guid": "n-1", "title": "Headline"}),
        change("delete", "asset", "asset", "handle:1", reversible=False),
    ]
    return [clip(f"A long and uneven title, number {7 * n}", gone[n % 5]) for n in range(count)]


@pytest.mark.parametrize("count", [7, 18, 40, 41, 200])
def test_what_is_lost_is_named_and_a_short_plan_is_never_shortened(count: int) -> None:
    third = count // 3
    alike = [clip(f"Also uneven {11 * n} {'long ' * 8}", marker(1)) for n in range(third)]
    similar = [clip(f"Other {13 * n}", comment(f"{n} {'v' * 300}")) for n in range(third)]
    removed = [*removals(count - 2 * third)]
    text = text_of(plan_of(*removed, *alike, *similar), width=80)
    flat = flattened(text)
    if count >= 18:
        assert flat.count('title"Headline"') == 1
    assert "w" * 500 in flat
    shortened = any(words in text for words in ("[…", "more (-v", "for example", "not shown"))
    assert shortened is (count > 41)  # of 41 some are deleted, and deletions are shown apart
    for target in removed:
        assert flattened(target.name) in flat
    if shortened or count > 40:
        return
    for target in (*alike, *similar):
        assert flattened(target.name) in flat
        for changed in target.changes:
            value = flattened(str(changed.after))
            if changed.aspect == "field" and len(value) <= 60:
                assert value in flat


def flattened(text: str) -> str:
    return re.sub(r"\s+", "", text)


# Timelines -----------------------------------------------------------------------------------------------------


def test_a_timeline_shows_what_stays_and_what_goes() -> None:
    timeline = timeline_of(long_film())
    assert timeline is not None
    assert drawn(timeline, 42) == [
        "├1──────•──────×┬2─────────────┳3~━━━━━━━┤",
        "├1━━━━━━•━━━━━━━┳2+━━━━━━━━━━━━~━━━━━━━━━┤",
    ]
    assert drawn(timeline, 42)[0].translate(ASCII) == "[1------o------x|2-------------#3~=======]"
    before, after = draw_timeline(timeline, 42)
    assert [run for run in before.runs if run[1] == "delete"] == [
        ("×", "delete"), ("┳3", "delete"), ("━━━━━━━", "delete"),
    ]  # fmt: skip
    assert [action for _, action in after.runs] == [
        None,
        "change",
        None,
        "change",
        "add",
        "change",
        None,
    ]


def test_only_additions_have_one_row() -> None:
    context = TargetContext(1000, (shown_segment(1, 0, 500), shown_marker(3, 750, "General")))
    timeline = timeline_of(clip("A", marker(250), context=context))
    assert timeline is not None
    assert drawn(timeline, 22) == ["├1────+────┄┄┄┄┄•┄┄┄┄┤"]


def test_a_segmentation_is_drawn_piece_by_piece() -> None:
    grid: Json = {"duration": 300, "pieces": 4}
    target = clip(
        "A", change("add", "segmentation", "300", None, grid), context=TargetContext(1000)
    )
    timeline = timeline_of(target)
    assert timeline is not None
    assert drawn(timeline, 42) == ["├1━━━━━━━━━━━┳2━━━━━━━━━━┳3━━━━━━━━━━┳4━━┤"]


def test_equal_timelines_are_drawn_once() -> None:
    def episode(number: int, frame: int) -> Target:
        breaks = (marker(frame, f"Break {number}"), marker(frame + 1, f"Tag {number}", "General"))
        return clip(f"EP{number}", *breaks, comment(f"Week {number}"))

    text = text_of(plan_of(*(episode(number, 33750) for number in range(1, 9)), episode(9, 20000)))
    assert text.count("├") == 2
    assert text.count("\n    timeline: that of studio-a · NEWS · EP1\n") == 7


def test_pieces_of_other_rates_are_not_shown_as_one() -> None:
    def pieces(name: str) -> Target:
        return clip(
            name, change("add", "segmentation", "300", None, {"duration": 300, "pieces": 4})
        )

    film = structs.replace(pieces("Film"), rate=Fraction(24))
    text = text_of(plan_of(*map(pieces, ("A", "B", "C")), film))
    assert text.count("in 4 pieces of 00:00:12:00 (300)") == 1
    assert text.count("in 4 pieces of 00:00:12:12 (300)") == 1


def test_what_begins_in_one_column_is_side_by_side_or_counted() -> None:
    """20 columns of 50 frames."""
    segments = (
        shown_segment(1, 0, 10),
        shown_segment(2, 100, 400),
        shown_segment(3, 500, 5),
        shown_segment(4, 505, 5),
    )
    kept = [
        shown_marker(place, frame, "General")
        for place, frame in enumerate((100, 110, *[600] * 12, 955, 956))
    ]
    context = TargetContext(1000, (*segments, *kept))
    timeline = timeline_of(clip("A", marker(120), marker(601), context=context))
    assert timeline is not None
    assert drawn(timeline, 22) == ["├┬1┬2+••───┬┬+•12┄┄┄*┤"]
    assert legend_of(draw_timeline(timeline, 22)) == [
        ("┄ no segment", None), ("─┬ segment", None), ("• marker", None), ("+ new", "add"),
        ("•12 so many in one column", None), ("* several in one column", None),
    ]  # fmt: skip


def test_a_segment_narrower_than_a_column_shows_that_it_changes() -> None:
    tiny: Json = {"number": 2, "start": 500, "duration": 5}
    context = TargetContext(10_000, (shown_segment(1, 0, 500), shown_segment(3, 505, 5)))
    timeline = timeline_of(
        clip("A", change("delete", "segment", "2", tiny, losses=1), context=context)
    )
    assert timeline is not None
    assert drawn(timeline, 22) == ["├1┳┬┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┤", "├1┬3┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┤"]


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
