"""One runner for ``tests/cases/<aspect>/*.json``: desired + live + dialect + version + ledger → changes + requests.

The keys of a case: ``desired`` holds the arguments of a task as in a playbook (several: a list), ``live`` the clip (or
the channel) as the server has it. ``changes`` is what the plan shows (``action aspect key``), ``requests`` what is
sent, byte for byte. Instead of these, ``error`` holds phrases that the error must contain (``errors``: of each target
in error), or ``unchanged`` is true. Every case that plans anything is applied to the model of a server and planned
again, which must give nothing (unless ``again`` declares otherwise). A task that is run rather than compared names its
module: ``{"command": {...}}``. ``disk`` holds the SHA-256 of existing files, ``left_out`` a task that the plan leaves
out. ``depends_on``, ``held`` and ``unwanted`` name what must still be so before and after the requests, ``missed`` what
is not as desired after them. ``outside`` has how a run left what others have changed. ``losses`` and ``emptied`` are
what limits count, ``values`` what the changes show, ``around`` the markers and segments that stay.

``tests/cases/editorial/*.json`` are tables. In each row, the clip ``Film`` (``live``, over that of the table) and the
``desired`` state give an ``error``, or ``warnings`` without their places. Other warnings fail the test.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from msauto.aspects import ASPECTS as ASPECTS_OF_MSAUTO
from msauto.documents.writer import CommentedValue, FlowStyle
from msauto.model.desired import Intent
from msauto.model.live import AssetSnapshot
from msauto.model.plan import Target
from msauto.model.server import Dialect
from msauto.model.snapshot import Json
from msauto.planning.survey import Survey
from tests.tables import table
from tests.unit.planning.planning_world import Clip, Stage, stage
from tests.unit.planning.playbook_forms import asset_intent, rss_intent, run_intent

ROOT = Path(__file__).resolve().parents[2] / "cases"
ASPECTS = (
    "asset", "title", "field", "xmp", "segment", "segmentation", "marker", "link", "restore", "rss_item", "together",
    "command", "thumbnail", "proxy", "xmp_batch",
)  # fmt: skip
CASES = sorted(path for aspect in ASPECTS for path in (ROOT / aspect).glob("*.json"))
TABLES = {
    path: json.loads(path.read_text(encoding="utf-8"))
    for path in sorted((ROOT / "editorial").glob("*.json"))
}
ROWS = [
    pytest.param(
        {**row, "live": {**table.get("live", {}), **row.get("live", {})}},
        id=f"{path.stem}-{number}",
    )
    for path, table in TABLES.items()
    for number, row in enumerate(table["rows"])
]
RUNS = frozenset({"command", "thumbnail", "proxy", "xmp_batch"})


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_case(path: Path) -> None:
    case = json.loads(path.read_text(encoding="utf-8"))
    assert set(case) <= KEYS, set(case) - KEYS
    context = _scene(case)
    intents = _intents(case, context)
    left_out: tuple[Intent, ...] = ()
    if "left_out" in case:
        separator = context.spec.dialect.list_separator
        left_out = (_intent(case["left_out"], "left_out.yml", separator),)
    found = context.plan(*intents, left_out=left_out)
    if "error" in case or "errors" in case:
        _check_errors(found, case.get("errors", [case.get("error")]))
        return
    assert [target.error for target in found.targets if target.error] == []
    _check_plan(found, case)
    if "reads" in case:
        assert context.reader.asked == case["reads"]
    assert list(found.warnings) == case.get("warnings", [])
    missed = [f"{each.aspect} {each.key}" for each in context.apply(found)]
    assert missed == case.get("missed", [])
    again = context.plan(*intents, left_out=left_out)
    assert _of_all(again, _changes) == case.get("again", [])
    assert sum(target.error is not None for target in again.targets) == case.get("again_errors", 0)


@pytest.mark.parametrize("row", ROWS)
def test_editorial_row(row: dict[str, Any]) -> None:
    assert set(row) <= {"desired", "live", "error", "warnings"}
    clip = _clip({"title": "Film", **row["live"]})
    intent = asset_intent({"title": "Film", **row["desired"]})
    found = stage(clip, folders={"Playout"}).plan(intent)
    errors = []
    if "error" in row:
        errors.append(row["error"])
        assert _of_all(found, _requests) == []
    _check_errors(found, errors)
    for warning, words in zip(found.warnings, row.get("warnings", []), strict=True):
        assert words in warning


@table("planning/exported", "live", "aspect", "items", "notes", "complete")
def test_what_is_exported(
    live: dict[str, Any], aspect: str, items: Any, notes: list[str] | None, complete: bool | None
) -> None:
    """``items`` can be written again by a playbook, ``notes`` have why others are left out."""
    asset = stage(_clip({"title": "Film", **live})).asset("Film")
    assert asset is not None
    xmp = {name: tuple(values) for name, values in live.get("xmp", {}).items()}
    snapshot = AssetSnapshot("Film", asset, xmp)
    part = ASPECTS_OF_MSAUTO[aspect].export(snapshot, Dialect())
    plain: list[Any] = []
    noted: list[CommentedValue] = []
    for value in _values(part.items):
        if isinstance(value, CommentedValue):
            noted.append(value)
        else:
            plain.append(_without_style(value))
    assert plain == (items or [])
    for note, words in zip(noted, notes or [], strict=True):
        assert words in str(note.notes)
    assert part.complete == (complete is None)


def _values(items: Any) -> Iterable[Any]:
    return items.values() if isinstance(items, Mapping) else items or ()


def _without_style(value: Any) -> Any:
    plain = value.value if isinstance(value, FlowStyle) else value
    return list(plain) if isinstance(plain, tuple) else plain


def test_there_are_cases() -> None:
    assert len(CASES) >= 60
    assert len(ROWS) >= 79
    assert {path.parent.name for path in CASES} == set(ASPECTS)


def _check_errors(found: Survey, expected: list[str | list[str]]) -> None:
    errors = [target.error for target in found.targets if target.error]
    for error, words in zip(errors, expected, strict=True):
        for word in [words] if isinstance(words, str) else words:
            assert word in error


def _check_plan(found: Survey, case: dict[str, Any]) -> None:
    assert _of_all(found, _changes) == case.get("changes", [])
    assert _of_all(found, _requests) == case.get("requests", [])
    assert dict(_of_all(found, _outside)) == case.get("outside", {})
    for key, shown in SHOWN.items():
        if key in case:
            assert _of_all(found, shown) == case[key], key
    if case.get("unchanged"):
        assert found.unchanged + found.kept == 1
        assert found.skipped == ()
        assert found.targets == ()
    if "skipped" in case:
        (skipped,) = found.skipped
        assert skipped.reason == case["skipped"]
        assert found.unchanged == 0
        assert found.targets == ()
    if len(found.targets) == 1:
        (target,) = found.targets
        covered = {number for request in target.requests for number in request.changes}
        assert covered == set(range(len(target.changes))), "every change has its request"


def _of_all(found: Survey, shown: Callable[[Target], Iterable[Any]]) -> list[Any]:
    """What is shown of each target, in the order of the plan."""
    return [each for target in found.targets for each in shown(target)]


def _changes(target: Target) -> list[str]:
    return [f"{change.action} {change.aspect} {change.key}" for change in target.changes]


def _requests(target: Target) -> list[str]:
    return [f"{request.method} {request.path}" for request in target.requests]


def _outside(target: Target) -> list[tuple[str, Json]]:
    return [
        (" ".join(change.thing), change.outside.left)
        for change in target.changes
        if change.outside is not None
    ]


def _around(target: Target) -> list[str]:
    if target.context is None:
        return []
    return [
        f"{item.name} {item.lane} {item.start}+{item.duration} {item.title}".rstrip()
        for item in target.context.items
    ]


SHOWN: dict[str, Callable[[Target], list[Any]]] = {
    "bodies": lambda target: [
        request.body.content.decode() for request in target.requests if request.body
    ],
    "reversible": lambda target: [change.reversible for change in target.changes],
    "basis": lambda target: [change.basis for change in target.changes],
    "losses": lambda target: [change.losses for change in target.changes],
    "values": lambda target: [[change.before, change.after] for change in target.changes],
    "emptied": lambda target: [[each.aspect, each.count] for each in target.emptied],
    "around": _around,
    "depends_on": lambda target: list(target.depends_on.names),
    "held": lambda target: [" ".join(each.thing) for each in target.holding or ()],
    "unwanted": lambda target: [[aspect, named] for aspect, named in target.unwanted],
}
"""What a case may name of a plan, beside its changes and requests."""
KEYS = {
    "about", "desired", "live", "others", "server", "dialect", "version", "ledger", "changes", "requests", "error",
    "errors", "unchanged", "skipped", "missed", "again", "again_errors", "reads", "warnings", "disk", "left_out",
    "outside", *SHOWN,
}  # fmt: skip


def _intents(case: dict[str, Any], context: Stage) -> list[Intent]:
    desired = case["desired"] if isinstance(case["desired"], list) else [case["desired"]]
    names = [f"task{number}.yml" for number in range(1, len(desired) + 1)]
    separator = context.spec.dialect.list_separator
    return [_intent(args, name, separator) for args, name in zip(desired, names, strict=True)]


def _intent(args: dict[str, Any], name: str, separator: str) -> Intent:
    module = next(iter(args))
    if module in RUNS:
        return run_intent(module, args[module], file=name)
    return (
        rss_intent(args, file=name)
        if "channel" in args
        else asset_intent(args, file=name, separator=separator)
    )


def _scene(case: dict[str, Any]) -> Stage:
    live, server = case.get("live"), dict(case.get("server", {}))
    clips = [
        _clip(one) for one in ([live] if live and "title" in live else []) + case.get("others", [])
    ]
    if live and "channel" in live:
        server["channels"] = {live["channel"]: live["items"]}
    server["folders"] = set(server.get("folders", []))
    if "reported" in server:
        server["reported"] = frozenset(server["reported"])
    if "databases" in server:
        server["databases"] = set(server["databases"])
    version = tuple(map(int, case["version"].split("."))) if "version" in case else None
    context = stage(*clips, dialect=Dialect(**case.get("dialect", {})), version=version, **server)
    context.memory.always.update(case.get("ledger", {}))
    context.disk.files.update(case.get("disk", {}))
    return context


def _clip(live: dict[str, Any]) -> Clip:
    segments: dict[int, dict[str, Any]] = {}
    twins = []
    for segment in live.get("segments", []):
        if segment["number"] in segments:
            twins.append(segment)
        else:
            segments[segment["number"]] = {**segment}
    return Clip(**{**live, "segments": segments, "twins": twins})
