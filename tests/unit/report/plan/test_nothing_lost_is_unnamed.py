"""Markdown and HTML name all that a plan removes, however many targets it has; a short plan is shown in full."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from html import unescape

import pytest
from msgspec import structs

from msauto.model.plan import Change, Plan, Target
from msauto.model.snapshot import Json
from msauto.plugins.pages import html
from msauto.report import markdown, text
from msauto.secrets.redaction import HIDDEN
from tests.unit.report.made_plans import change, episode, film, plan_of

LONG = "a headline that goes on and on " * 20


def removal(number: int) -> Change:
    """A removal of an item that no other target has."""
    title: Json = f"Lost {number}"
    marker: Json = {"frame": number, "track": "Cue Point", "title": title}
    segment: Json = {"number": number, "start": 0, "duration": 9, "title": title}
    return (
        change("delete", "marker", f"Cue Point@{number}", marker, losses=1),
        change("delete", "segment", f"{number}", segment, losses=1),
        change(
            "delete",
            "rss_item",
            f"n-{number}",
            {"title": title, "text": f"{LONG}{number}!"},
            losses=1,
        ),
        change("delete", "link", f"Playout/Lost {number}", {"folder": "Playout", "title": title}),
        change("delete", "asset", "", {"folder": "Raw", "title": title}, reversible=False),
    )[number % 5]


def changed(base: Target, name: str, *changes: Change) -> Target:
    return structs.replace(base, name=name, changes=changes, requests=(), emptied=())


def world(size: int) -> Plan:
    """Targets of which each 4th removes something, and the others change what no other does."""

    def target(number: int) -> Target:
        if number % 4 == 3:
            removed = removal(number // 4)
            base = film() if removed.aspect == "asset" else episode()
            return changed(base, f"Lost {number // 4}", removed)
        keys = [f"user_{bit}" for bit in range(8) if number >> bit & 1]
        changes = [
            change("change", "field", key, "", f"Value {number}") for key in keys or ["comment"]
        ]
        return changed(episode(), f"Clip {number:03}", *changes)

    return plan_of(*map(target, range(size)))


def without_scripts(page: str) -> str:
    return unescape(page.partition('<script type="application/json"')[0])


@pytest.mark.parametrize("form", ["markdown", "html"])
@pytest.mark.parametrize("size", [7, 18, 40, 41, 200])
def test_nothing_lost_is_unnamed(size: int, form: str) -> None:
    plan = world(size)
    render = markdown.render_plan if form == "markdown" else html.render_plan
    page = without_scripts("".join(render(plan)))
    for number in range(size // 4):
        assert f"Lost {number}" in page, number
        if number % 5 == 2:
            assert f"{LONG}{number}!" in page, number
    named = sum(f"Clip {number:03}" in page for number in range(size))
    if size <= 40:
        assert named == size - size // 4
        assert f"Value {0}" in page
    left = size - size // 4 - named
    assert ("not shown here" in page or "targets more" in page) == bool(left)


def test_a_comment_unfolds_what_is_removed() -> None:
    page = "".join(markdown.render_plan(world(40)))
    for block in page.split("<details")[1:]:
        assert block.startswith(" open") == ("| `-` |" in block)


def test_a_value_that_would_fill_the_comment_is_cut() -> None:
    huge = change("delete", "rss_item", "n-1", {"title": "Lost", "text": "x" * 90_000}, losses=1)
    page = "".join(
        markdown.render_plan(plan_of(structs.replace(episode(), changes=(huge,), emptied=())))
    )
    assert len(page) < markdown.LIMIT
    assert "n-1" in page
    assert "not shown here" not in page


@pytest.mark.parametrize("render", [text.render_plan, markdown.render_plan, html.render_plan])
def test_an_attribute_is_named_whose_values_are_secret(
    render: Callable[[Plan], Iterable[str]],
) -> None:
    """Redacted, the values are the same."""
    item: Json = {"guid": "n-1", "text": HIDDEN}
    secret = change("change", "rss_item", "n-1", item, item, secret=True, reversible=False)
    shown = "".join(render(plan_of(structs.replace(episode(), changes=(secret,), emptied=()))))
    assert f"text {HIDDEN}" in re.sub("<[^>]*>", "", without_scripts(shown))
