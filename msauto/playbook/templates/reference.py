"""The reference of what templates can use, evaluated on a sample asset."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime
from fractions import Fraction
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from msgspec import Struct

from msauto import sockets
from msauto.documents.document import outside_node
from msauto.documents.loader import load_yaml
from msauto.model.facts import Facts
from msauto.model.fields import MARKER_ATTRIBUTES, names
from msauto.model.live import Asset, Link, Marker, Segment
from msauto.model.timecode import Timecode, TimecodeError, show_rate
from msauto.playbook.hosts import Hosts, ResolveOptions
from msauto.playbook.input_files import Files
from msauto.playbook.inventory import Host, Inventory
from msauto.playbook.templates.environment import evaluate_expression
from msauto.playbook.templates.filters import FILTERS, LOOKUPS, TESTS
from msauto.playbook.templates.lookups import reader_of
from msauto.playbook.templates.names import OMIT, AssetView
from msauto.playbook.variables import GIVEN, Level, TemplateScope, read_variables
from msauto.secrets.commands import SecretCommand, SecretCommands


class ReferenceEntry(Struct, frozen=True):
    """A filter, test, lookup, fact, variable or position with an example and its result, as text."""

    name: str
    words: str
    example: str = ""
    result: str = ""


_FILE = (
    files("msauto.playbook")
    .joinpath("reference_texts", "templates.yml")
    .read_text(encoding="utf-8")
)
_FILE = _FILE.replace("$marker_attributes", ", ".join(names(MARKER_ATTRIBUTES)))
_TEXTS: dict[str, Any] = load_yaml(_FILE.encode(), "templates.yml").data
"""What is not documented in code (Jinja's own filters and tests, facts), and a sample."""

SAMPLE = Asset(
    **_TEXTS["sample"]["asset"],
    folder=("Raw", "2026"),
    finalized=True,
    attributes=_TEXTS["sample"]["attributes"],
    markers=(Marker(1, 250, {"track": "Cue Point", "title": "Ad break", "rating": "3"}),),
    segments=(Segment(1, 0, 18750, "Part 1", ("Part 1",)),),
)


class _SampleFiles(Files):
    def read(self, path: str) -> bytes:
        """Return a sample file by its name."""
        text: str = _TEXTS["sample"]["files"][Path(path).name]
        return text.encode()

    def names(self, *_: object) -> list[str]:
        """Return the names of the sample files."""
        return list(_TEXTS["sample"]["files"])


@lru_cache(maxsize=1)
def _scope() -> TemplateScope:
    node = outside_node("reference")
    sample = _TEXTS["sample"]
    variables = read_variables(sample["variables"], Level.PLAY, node)
    groups = dict.fromkeys(("all", "playout"), ("studio-a",))
    inventory = Inventory({"studio-a": Host(node, variables)}, groups)
    secrets = SecretCommands({"partner": SecretCommand((), "", node.place)}, allowed=None)
    options = ResolveOptions(
        (),
        env={"HOME": "/home/ops"},
        now=datetime(2026, 11, 20, 18, tzinfo=UTC),
        secrets=secrets,
    )
    hosts = Hosts(inventory, (), options, _SampleFiles())
    facts = Facts(
        asset=SAMPLE,
        xmp={"dc:subject": ("news", "evening")},
        links=(Link(("Playout",), "Evening News"),),
    )
    scope = hosts.scope("studio-a", "/srv/automation/playbooks")
    return scope.with_given(asset=AssetView(facts))


def _evaluated(name: str, words: str, example: str) -> ReferenceEntry:
    expression = example.removeprefix("{{ ").removesuffix(" }}")
    value = evaluate_expression(expression, _scope(), outside_node(name))
    result = "the key is left out" if value is OMIT else show(value)
    return ReferenceEntry(name, words, example, result)


def show(value: Any) -> str:
    """Return a value in one line, as JSON; times and exact numbers as templates print them."""
    if isinstance(value, Fraction | date):
        return str(value)
    return json.dumps(value, ensure_ascii=False, default=str)


def _documented(functions: Mapping[str, Callable[..., Any]]) -> Iterator[ReferenceEntry]:
    for name, function in functions.items():
        text = inspect.getdoc(function) or ""
        *description, example = map(str.strip, text.splitlines())
        words = " ".join(filter(None, description))
        words = words.removesuffix(".").replace("``", "`")
        words = words[:1].lower() + words[1:]
        yield _evaluated(name, words, example.removeprefix("Example: "))


def _all(kind: str, functions: Mapping[str, Callable[..., Any]]) -> list[ReferenceEntry]:
    """Return our own functions and Jinja's, by name."""
    of_jinja = (_evaluated(name, words, example) for name, (words, example) in _TEXTS[kind].items())
    return sorted((*_documented(functions), *of_jinja), key=lambda entry: entry.name)


def filters() -> list[ReferenceEntry]:
    """Return the filters in order of name."""
    return _all("filters", FILTERS)


def tests() -> list[ReferenceEntry]:
    """Return the tests of ``is`` in order of name."""
    return _all("tests", TESTS)


def lookups() -> list[ReferenceEntry]:
    """Return the lookups."""
    readers = dict(LOOKUPS)
    for kind in sockets.names_of("lookups"):
        readers[kind] = reader_of(kind)
    return sorted(_documented(readers), key=lambda entry: entry.name)


def facts() -> list[ReferenceEntry]:
    """Return the facts of an asset, each with its type and its value for the sample."""
    return [
        _evaluated(name, f"{kind}: {words}", f"asset.{name}")
        for name, (kind, words) in _TEXTS["facts"].items()
    ]


def variables() -> list[ReferenceEntry]:
    """Return the names that msauto sets for templates."""
    return [_evaluated(name, words, example) for name, (words, example) in GIVEN.items()]


# Positions ------------------------------------------------------------------------------------------------------

_RATES = (Fraction(25), Fraction(30000, 1001))
_FORMS = (
    ("frames", "a whole number: frames, at any rate", "1800"),
    ("HH:MM:SS:FF", "a time code; hours may exceed 24", "00:01:00:02"),
    (
        "HH:MM:SS;FF",
        "drop frame, at 29.97 and 59.94 only: some time codes do not exist",
        "00:01:00;02",
    ),
    ("HH:MM:SS.ss", "seconds, rounded to the nearest frame", "00:01:00.08"),
)


def positions() -> list[ReferenceEntry]:
    """Return the forms of a position, each with an example in frames at two rates."""
    entries = []
    for name, words, text in _FORMS:
        at_rates = [f"{_frames(text, rate)} at {show_rate(rate)}" for rate in _RATES]
        entries.append(ReferenceEntry(name, words, text, ", ".join(at_rates)))
    return entries


def _frames(text: str, rate: Fraction) -> str:
    try:
        return f"frame {Timecode.parse(text).to_frames(rate)}"
    except TimecodeError:
        return "an error"
