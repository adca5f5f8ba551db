"""The reference of templates: filters, tests, lookups, facts, variables, each example computed on a sample asset."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

from msauto.model.facts import Facts
from msauto.model.live import Asset, Link, Marker, Segment
from msauto.playbook.files import Files
from msauto.playbook.reference.entries import ReferenceEntry
from msauto.playbook.reference.filter_texts import FACT_WORDS, FILTER_WORDS, LOOKUP_WORDS, QUESTION_WORDS, SIGNS
from msauto.playbook.templates.environment import evaluate_expression, names_known
from msauto.playbook.templates.lookups import LOOKUPS, LookupContext
from msauto.playbook.templates.sandbox import OMIT, AssetView, EnvView
from msauto.playbook.variables.variables import GIVEN, HostVars, Level, TemplateScope, Variables, read_variables
from msauto.playbook.yaml.document import said_outside

SAMPLE = Asset(
    "Evening News",
    folder=("Raw", "2026"),
    hires="$(video_path)/news.mxf",
    proxy="$(video_path)/news.mp4",
    archive="",
    link_id=17,
    finalized=True,
    attributes={
        "frames": "45000",
        "frame_time": "0.0400000000",
        "first_frame": "0",
        "last_frame": "44999",
        "width": "1920",
        "height": "1080",
        "bps": "24",
        "channels": "2",
        "sample_rate": "48000",
        "create_time": "2026-11-20T18:00:00",
        "rec_time": "2026-11-20T17:30:00",
        "orig_name": "news.mov",
        "orig_type": "mov",
        "derived_from": "",
        "mime_type": "2",
        "comment": "Ready",
    },
    markers=(Marker(1, 250, {"track": "Cue Point", "title": "Ad break", "rating": "3"}),),
    segments=(Segment(1, 0, 18750, "Part 1", ("Part 1",)),),
)
_VARIABLES: Mapping[str, Any] = {
    "house": "Kanal 5",
    "database": "NEWS",
    "words": ["news", "evening"],
    "shows": [{"title": "News", "kind": "news"}, {"title": "Film", "kind": "film"}],
}
_FILES: Mapping[str, str] = {
    "promos.csv": "title,length\nPromo 1,012\n",
    "note.txt": "one\ntwo\n",
    "show.json": '{"title": "News"}',
    "show.yml": "title: News\nlive: no\n",
}


class _SampleFiles(Files):
    def read(self, path: str) -> bytes:
        """Return a sample file by its name."""
        return _FILES[Path(path).name].encode()


@lru_cache(maxsize=1)
def _scope() -> TemplateScope:
    node = said_outside("reference")
    around = LookupContext({"HOME": "/home/ops"}, _SampleFiles(), Path(), Path())
    variables = Variables(read_variables(dict(_VARIABLES), Level.PLAY, node))
    facts = Facts(asset=SAMPLE, xmp={"dc:subject": ("news", "evening")}, links=(Link(("Playout",), "Evening News"),))
    scopes: dict[str, TemplateScope] = {}
    given = {
        "asset": AssetView(facts),
        "env": EnvView(around.env),
        "group_names": ["playout"],
        "groups": {"all": ["studio-a"], "playout": ["studio-a"]},
        "hostvars": HostVars(scopes),
        "inventory_hostname": "studio-a",
        "now": datetime(2026, 11, 20, 18, tzinfo=UTC),
        "omit": OMIT,
        "playbook_dir": "/srv/automation/playbooks",
    }
    scopes["studio-a"] = TemplateScope(variables, given, around)
    return scopes["studio-a"]


def _entries(words: Mapping[str, tuple[str, str]]) -> Iterator[ReferenceEntry]:
    for name, (text, example) in words.items():
        yield ReferenceEntry(name, text, example, show(evaluate_expression(example, _scope(), said_outside(name))))


def show(value: Any) -> str:
    """Write a value in one line, as JSON; times and exact numbers as templates would print them."""
    if isinstance(value, Fraction | date):
        return str(value)
    return json.dumps(value, ensure_ascii=False, default=str)


def filters() -> list[ReferenceEntry]:
    """Return the filters in order of name; raises ``LookupError`` where code and words differ."""
    _check(names_known()[0], FILTER_WORDS, "filter")
    return sorted(_entries(FILTER_WORDS), key=lambda entry: entry.name)


def questions() -> list[ReferenceEntry]:
    """Return the tests of ``is`` in order of name; raises as :func:`filters`."""
    _check(names_known()[1] - SIGNS, QUESTION_WORDS, "test")
    return sorted(_entries(QUESTION_WORDS), key=lambda entry: entry.name)


def lookups() -> list[ReferenceEntry]:
    """Return what ``lookup`` reads; raises as :func:`filters`."""
    _check(frozenset(LOOKUPS), LOOKUP_WORDS, "lookup")
    return list(_entries(LOOKUP_WORDS))


def facts() -> list[ReferenceEntry]:
    """Return the facts of an asset, each with its type and what it is of a sample."""
    found = []
    for name, (kind, words) in FACT_WORDS.items():
        example = f"asset.{name}"
        value = evaluate_expression(example, _scope(), said_outside(name))
        found.append(ReferenceEntry(name, f"{kind}: {words}", example, show(value)))
    return found


def variables() -> list[ReferenceEntry]:
    """Return the names that msauto gives to templates."""
    found = []
    for name, (words, example) in GIVEN.items():
        expression = example.removeprefix("{{ ").removesuffix(" }}")
        value = evaluate_expression(expression, _scope(), said_outside(name))
        found.append(ReferenceEntry(name, words, example, "the key is left out" if value is OMIT else show(value)))
    return found


def _check(there: frozenset[str], told: Mapping[str, object], kind: str) -> None:
    untold, gone = sorted(there - told.keys()), sorted(told.keys() - there)
    if untold or gone:
        raise LookupError(f"the reference lacks the {kind} {untold}, and tells of {gone}, which is not there")
