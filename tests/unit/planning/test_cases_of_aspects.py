"""One runner for ``tests/cases/<aspect>/*.json``: desired + live + dialect + version + ledger → changes + requests.

The keys of a case: ``desired`` holds the arguments of a task as in a playbook (several: a list), ``live`` the clip (or
the channel) as the server has it. ``changes`` is what the plan shows (``action aspect key``), ``requests`` what is
sent, byte for byte. Instead of these, ``error`` holds phrases that the error must contain (``errors``: of each target
in error), or ``unchanged`` is true. Every case that plans anything is applied to the model of a server and planned
again, which must give nothing (unless ``again`` declares otherwise). A task that is run rather than compared names its
module: ``{"command": {...}}``. ``disk`` holds the SHA-256 of existing files, ``left_out`` a task that the plan leaves
out. ``looked``, ``held`` and ``unwanted`` name what must still be so before and after the requests. ``outside`` has how
a run left what others have changed.

``tests/cases/editorial/*.json`` are tables. In each row, the clip ``Film`` (``live``, over that of the table) and the
``desired`` state give an ``error``, or ``warnings`` without their places. Other warnings fail the test.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from msauto.model.desired import Intent
from msauto.model.plan import Target
from msauto.model.server import Dialect
from msauto.planning.survey import Survey
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
KEYS = {
    "about", "desired", "live", "others", "server", "dialect", "version", "ledger", "changes", "requests", "bodies",
    "error", "errors", "unchanged", "skipped", "again", "again_errors", "reads", "warnings", "reversible", "basis",
    "disk", "looked", "held", "unwanted", "left_out", "outside",
}  # fmt: skip


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_case(path: Path) -> None:
    case = json.loads(path.read_text(encoding="utf-8"))
    assert set(case) <= KEYS, set(case) - KEYS
    context = _scene(case)
    intents = _intents(case, context)
    separator = context.spec.dialect.list_separator
    left_out = tuple(
        _intent(args, "left_out.yml", separator) for args in [case.get("left_out")] if args
    )
    found = context.plan(*intents, left_out=left_out)
    if "error" in case or "errors" in case:
        _check_errors(found, case.get("errors", [case.get("error")]))
        return
    assert [target.error for target in found.targets if target.error] == []
    _check_plan(found, case)
    if "reads" in case:
        assert context.reader.asked == case["reads"]
    assert list(found.warnings) == case.get("warnings", [])
    context.apply(found)
    again = context.plan(*intents, left_out=left_out)
    assert [change for target in again.targets for change in _changes(target)] == case.get(
        "again", []
    )
    assert sum(target.error is not None for target in again.targets) == case.get("again_errors", 0)


@pytest.mark.parametrize("row", ROWS)
def test_editorial_row(row: dict[str, Any]) -> None:
    assert set(row) <= {"desired", "live", "error", "warnings"}
    found = stage(_clip({"title": "Film", **row["live"]}), folders={"Playout"}).plan(
        asset_intent({"title": "Film", **row["desired"]})
    )
    _check_errors(found, [row["error"]] if "error" in row else [])
    assert not ("error" in row and any(target.requests for target in found.targets))
    for warning, words in zip(found.warnings, row.get("warnings", []), strict=True):
        assert words in warning


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
    changes = [change for target in found.targets for change in target.changes]
    requests = [request for target in found.targets for request in target.requests]
    assert [change for target in found.targets for change in _changes(target)] == case.get(
        "changes", []
    )
    assert [f"{request.method} {request.path}" for request in requests] == case.get("requests", [])
    if "bodies" in case:
        assert [request.body.content.decode() for request in requests if request.body] == case[
            "bodies"
        ]
    if "reversible" in case:
        assert [change.reversible for change in changes] == case["reversible"]
    found_outside = {
        " ".join(change.thing): change.outside.left
        for change in changes
        if change.outside is not None
    }
    assert found_outside == case.get("outside", {})
    if "basis" in case:
        assert [change.basis for change in changes] == case["basis"]
    for key, named in (("looked", _looked), ("held", _held), ("unwanted", _unwanted)):
        if key in case:
            assert [each for target in found.targets for each in named(target)] == case[key]
    if case.get("unchanged"):
        assert (found.unchanged + found.kept, found.skipped, found.targets) == (1, (), ())
    if "skipped" in case:
        assert [skipped.reason for skipped in found.skipped] == [case["skipped"]]
        assert (found.unchanged, found.targets) == (0, ())
    covered = sorted({number for request in requests for number in request.changes})
    assert len(found.targets) != 1 or covered == list(range(len(changes))), (
        "every change has its request"
    )


def _looked(target: Target) -> list[str]:
    return list(target.depends_on.names)


def _held(target: Target) -> list[str]:
    return [" ".join(each.thing) for each in target.holding or ()]


def _unwanted(target: Target) -> list[list[Any]]:
    return [[aspect, named] for aspect, named in target.unwanted]


def _changes(target: Target) -> list[str]:
    return [f"{change.action} {change.aspect} {change.key}" for change in target.changes]


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
    segments = {
        one["number"]: {k: v for k, v in one.items() if k != "number"}
        for one in live.get("segments", [])
    }
    return Clip(**{**live, "segments": segments})
