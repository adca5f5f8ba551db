"""The reference of what templates can use, evaluated on a sample asset, and the pages of ``docs/reference``."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from fractions import Fraction
from functools import lru_cache
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Any

from msgspec import Struct

from msauto.documents.document import outside_node
from msauto.documents.loader import load_yaml
from msauto.model.facts import Facts
from msauto.model.fields import MARKER_ATTRIBUTES, names
from msauto.model.live import Asset, Link, Marker, Segment
from msauto.model.timecode import Timecode, TimecodeError, show_rate
from msauto.playbook.hosts import Hosts, ResolveOptions
from msauto.playbook.input_files import Files
from msauto.playbook.inventory import Host, Inventory
from msauto.playbook.reference import TOPICS, module, render_topic, table
from msauto.playbook.templates.environment import evaluate_expression, names_known
from msauto.playbook.templates.filters import FILTERS, LOOKUPS, REMOVED, TESTS
from msauto.playbook.templates.names import OMIT, AssetView
from msauto.playbook.variables import GIVEN, Level, TemplateScope, read_variables


class ReferenceEntry(Struct, frozen=True):
    """A filter, test, lookup, fact, variable or position with an example and its result, as text."""

    name: str
    words: str
    example: str = ""
    result: str = ""


def _read_texts() -> dict[str, Any]:
    text = files(__package__).joinpath("reference_texts", "templates.yml").read_text(encoding="utf-8")
    text = text.replace("$marker_attributes", ", ".join(names(MARKER_ATTRIBUTES)))
    data: dict[str, Any] = load_yaml(text.encode(), "templates.yml").data
    return data


_TEXTS = _read_texts()
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


@lru_cache(maxsize=1)
def _scope() -> TemplateScope:
    node = outside_node("reference")
    variables = tuple(read_variables(_TEXTS["sample"]["variables"], Level.PLAY, node))
    inventory = Inventory({"studio-a": Host(node, variables)}, dict.fromkeys(("all", "playout"), ("studio-a",)))
    now = datetime(2026, 11, 20, 18, tzinfo=UTC)
    hosts = Hosts(inventory, (), ResolveOptions((), env={"HOME": "/home/ops"}, now=now), _SampleFiles())
    facts = Facts(asset=SAMPLE, xmp={"dc:subject": ("news", "evening")}, links=(Link(("Playout",), "Evening News"),))
    return hosts.scope("studio-a", "/srv/automation/playbooks").with_asset(AssetView(facts))


def _evaluated(name: str, words: str, example: str) -> ReferenceEntry:
    value = evaluate_expression(example.removeprefix("{{ ").removesuffix(" }}"), _scope(), outside_node(name))
    return ReferenceEntry(name, words, example, "the key is left out" if value is OMIT else show(value))


def show(value: Any) -> str:
    """Return a value in one line, as JSON; times and exact numbers as templates print them."""
    return str(value) if isinstance(value, Fraction | date) else json.dumps(value, ensure_ascii=False, default=str)


def _documented(functions: Mapping[str, Callable[..., Any]]) -> Iterator[ReferenceEntry]:
    for name, function in functions.items():
        lines = (inspect.getdoc(function) or "").splitlines()
        if not lines or not lines[-1].startswith("Example: "):
            raise LookupError(f"{name}: the docstring has no example")
        words = " ".join(filter(None, map(str.strip, lines[:-1]))).removesuffix(".").replace("``", "`")
        yield _evaluated(name, words[:1].lower() + words[1:], lines[-1].removeprefix("Example: "))


def _all(kind: str, functions: Mapping[str, Callable[..., Any]], known: frozenset[str]) -> list[ReferenceEntry]:
    """Return our own functions and Jinja's, by name; raises ``LookupError`` for one without documentation."""
    texts = _TEXTS[kind]
    undocumented, gone = known - texts.keys() - functions.keys(), texts.keys() - known
    if undocumented or gone:
        raise LookupError(f"{kind} without documentation: {sorted(undocumented)}; that do not exist: {sorted(gone)}")
    entries = [*_documented(functions), *(_evaluated(name, words, example) for name, (words, example) in texts.items())]
    return sorted(entries, key=lambda entry: entry.name)


def filters() -> list[ReferenceEntry]:
    """Return the filters in order of name."""
    return _all("filters", FILTERS, names_known()[0])


_OTHER_NAMES = frozenset({"==", "!=", "<", "<=", ">", ">="})
"""Other names of tests, which are documented with the first name."""


def tests() -> list[ReferenceEntry]:
    """Return the tests of ``is`` in order of name."""
    return _all("tests", TESTS, names_known()[1] - _OTHER_NAMES)


def lookups() -> list[ReferenceEntry]:
    """Return the lookups."""
    return list(_documented(LOOKUPS))


def facts() -> list[ReferenceEntry]:
    """Return the facts of an asset, each with its type and its value for the sample."""
    return [_evaluated(name, f"{kind}: {words}", f"asset.{name}") for name, (kind, words) in _TEXTS["facts"].items()]


def variables() -> list[ReferenceEntry]:
    """Return the names that msauto sets for templates."""
    return [_evaluated(name, words, example) for name, (words, example) in GIVEN.items()]


# Positions ------------------------------------------------------------------------------------------------------

_RATES = (Fraction(25), Fraction(30000, 1001))
_FORMS = (
    ("frames", "a whole number: frames, at any rate", "1800"),
    ("HH:MM:SS:FF", "a time code; hours may exceed 24", "00:01:00:02"),
    ("HH:MM:SS;FF", "drop frame, at 29.97 and 59.94 only: some time codes do not exist", "00:01:00;02"),
    ("HH:MM:SS.ss", "seconds, rounded to the nearest frame", "00:01:00.08"),
)


def positions() -> list[ReferenceEntry]:
    """Return the forms of a position, each with an example in frames at two rates."""
    return [
        ReferenceEntry(name, words, text, ", ".join(f"{_frames(text, rate)} at {show_rate(rate)}" for rate in _RATES))
        for name, words, text in _FORMS
    ]


def _frames(text: str, rate: Fraction) -> str:
    try:
        return f"frame {Timecode.parse(text).to_frames(rate)}"
    except TimecodeError:
        return "an error"


_MADE = "<!-- Made from the code by `python -m tests.docs.make_reference`: change the code, not this page. -->\n\n"


_LOOKUPS = """
## Lookups

Files are searched for beside the playbook, inside its repository (the nearest folder above with `.git` or
`msauto.toml`; without one, see [security](../explanation/safety.md#playbooks)). `[lookup] folders` in `msauto.toml`
opens others.

"""


def _modules() -> str:
    intro = (
        "# Plays, tasks and modules: every key\n\n"
        "Every value may be a template, except those marked (no template). A key without a value is an error: write\n"
        '`""` to clear, or omit the key. `[]` in a key means: of each item of the list.\n\n'
    )
    return _MADE + intro + "\n".join(render_topic(module(name)) for name in TOPICS)


def _filters() -> str:
    intro = (
        "# Filters, tests, lookups: every one\n\n"
        "As in Ansible and Jinja, and more for time codes. All are deterministic: the same playbook gives the same\n"
        "plan. `words` is `[news, evening]`, `shows` a list of mappings with `title` and `kind`.\n\n"
    )
    reasons = groupby(sorted(REMOVED, key=lambda name: (REMOVED[name], name)), REMOVED.__getitem__)
    gone = [(", ".join(f"`{name}`" for name in names_of), why) for why, names_of in reasons]
    return (
        _MADE
        + intro
        + "## Filters\n\n"
        + _entries(filters())
        + '\n## Tests\n\nFor `when`, `where`, `that` and `if`: `asset.title is match("EP")`.\n\n'
        + _entries(tests())
        + _LOOKUPS
        + _entries(lookups())
        + "\n## Removed on purpose\n\n"
        + table(("filter or test", "why"), gone)
    )


def _facts() -> str:
    intro = (
        "# Facts and given names\n\n"
        "The names that templates can use. A fact is read from the server only if a template uses it.\n\n"
        "## Facts of the asset\n\n"
        "Any other attribute that the server reports is available as well: `asset.NAME`, or `asset['NAME']`. One that\n"
        "it does not report is an error, except with `| default(...)` or `is defined`.\n\n"
    )
    names = "\n## Given names\n\nIn addition to the variables of the playbook, and `item` in a loop:\n\n"
    return _MADE + intro + _entries(facts(), "fact") + names + _entries(variables(), "name")


def _entries(entries: Iterable[ReferenceEntry], head: str = "name") -> str:
    rows = [(f"`{each.name}`", each.words, _code(each.example), _code(each.result)) for each in entries]
    return table((head, "means", "example", "gives"), rows)


def _code(text: str) -> str:
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}"


PAGES: Mapping[str, Callable[[], str]] = {"modules": _modules, "filters": _filters, "facts": _facts}
"""The pages by name, each ``docs/reference/NAME.md``."""
