"""Any text, wherever a task writes one: it is refused when planning, or after applying the next plan is empty."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from msauto.errors import InputError
from msauto.plugins.simulator.embedded import Simulator, empty_state
from tests.examples import examples
from tests.stage import Stage
from tests.tables import one_fast_in

SIGNS = st.one_of(
    st.characters(exclude_categories=("Cs", "Cc")),
    st.sampled_from(
        "\x00\x01\x0b\x0c\x1f\x7f\x85\u2028\ufeff\ufffe\uffff\ud800\udfff\r\n\t =:<&'\"\\/"
    ),
)
TEXTS = st.text(SIGNS, max_size=6).map(
    lambda text: f"{text}."
)  # a title or folder of blanks is another matter
CARRIED = (
    "plain", "две\nстроки", "a\rb", "tab\tin", " a", "a ", "a \nb", "\ufeffa", "a\ufeffb", "a\u2028b", "\x85b", "a\x7f",
    "\ufffd", "a=b", "<a>&amp;", "e\u0301",
)  # fmt: skip
NOT_CARRIED = ("a\x00", "\x01", "a\x0bb", "\x1f", "\ufffe", "\uffff", "\ud800")
PLACES: dict[str, Callable[[str], dict[str, Any]]] = {
    "comment": lambda text: {"fields": {"comment": text}},
    "dc:title": lambda text: {"xmp": {"dc:title": text}},
    "dc:subject": lambda text: {"xmp": {"dc:subject": ["first", "", text]}},
    "segments": lambda text: {
        "segments": [{"number": 1, "start": 0, "duration": 5, "title": text, "keywords": text}]
    },
    "markers": lambda text: {
        "markers": [{"at": 5, "title": text, "comment": text, "user": text, "keywords": text}]
    },
    "links": lambda text: {"links": [{"folder": "Playout", "title": text}]},
    "folder": lambda text: {"links": [{"folder": text}]},
    "title": lambda text: {"title": text, "was": ["Film"]},
}


def everywhere(text: str) -> dict[str, Any]:
    args: dict[str, Any] = {}
    for place in PLACES.values():
        for key, value in place(text).items():
            joined = args.get(key)
            args[key] = (
                {**joined, **value}
                if isinstance(joined, dict)
                else joined + value
                if joined
                else value
            )
    return args


def converges(sim: Simulator, args: dict[str, Any], shape: str = "attr") -> str | None:
    """Apply a task to a new clip and plan it again; return why it is refused before anything is sent, if it is."""
    sim.state = empty_state()
    sim.dialect = sim.dialect.with_values(
        {"xmp_shape": shape, "folder_missing": "create", "list_separator": "|"}
    )
    news = sim.state.databases["NEWS"]
    news.make_folder("Playout")
    news.add_clip("Film", "Raw", frames=100)
    sim.clear_log()
    task = {"name": "Write it", "asset": {"title": "Film", **args}}
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(sim, Path(folder), {"folder_missing": "create", "list_separator": "|"})
        try:
            result = stage.apply(task)
        except InputError as error:
            assert not stage.sent()
            return str(error)
        errors = [target.target.error for target in result.targets if target.target.error]
        assert not errors
        assert result.ok, [(target.outcome, target.message) for target in result.targets]
        again = stage.plan(task)
        assert (again.requests, again.errors) == (0, 0)
        return None


@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.too_slow])
@given(TEXTS, st.sampled_from(["attr", "element", "nested"]))
@example("b", "attr")
@example(" a\t\n", "attr")
def test_any_text_is_refused_or_converges(sim: Simulator, text: str, shape: str) -> None:
    why = converges(sim, everywhere(text), shape)
    assert why is None or "playbook.yml:" in why


@pytest.mark.parametrize("text", one_fast_in(2, CARRIED), ids=ascii)
def test_what_xml_carries_converges(sim: Simulator, text: str) -> None:
    assert converges(sim, everywhere(text)) is None


@pytest.mark.parametrize("shape", ["attr", "element", "nested", "lines"])
def test_xmp_values_come_back_from_every_shape(sim: Simulator, shape: str) -> None:
    fields = {
        "dc:subject": list(CARRIED),
        "dc:title": "a \nb",
        "dc:type": ["", "", "a", ""],
        "dc:format": ["", ""],
    }
    assert converges(sim, {"xmp": fields}, shape) is None


@pytest.mark.parametrize("text", NOT_CARRIED, ids=ascii)
def test_what_xml_cannot_carry_is_refused_at_its_place(sim: Simulator, text: str) -> None:
    at = next(
        index for index, sign in enumerate(text, 1) if sign in "\x00\x01\x0b\x1f\ufffe\uffff\ud800"
    )
    for name, place in PLACES.items():
        why = converges(sim, place(text))
        assert why is not None, name
        assert f"holds U+{ord(text[at - 1]):04X} as character {at}" in why, name
        assert "playbook.yml:" in why
        assert "remove the character" in why
