"""One runner for ``tests/cases/stories/*.yml``: what msauto and other users do to a server in turns, over HTTP.

A file has ``stories``, and what all of them share: ``live`` is the content of the server (``sample``: that of the
embedded one), ``server`` has its switches, ``dialect`` that of the inventory. A story may add to each. ``each`` has
rows: a story runs once for each, with its values in place of ``$name``. A file may have rows for all its stories.
With ``rows`` of a file, its slow tests are the same stories on other servers, which have the switches that a story
``keeps``.

A step can ``apply`` or ``plan`` tasks; the keys of ``asset:`` are enough, and ``the plan`` is that of the step
before. It can ``undo`` or ``plan_undo`` a run: the ``last`` one, or one by its number. ``others`` is what other users
do, see :class:`tests.stories.Others`; ``wait`` are seconds that pass; ``server``, ``version``, ``dialect`` and
``frame_rate`` change. ``file`` writes one, ``playbook`` tasks, and ``command`` is one of the command line with its
exit ``code``.
``options`` are those of planning. ``faults`` hold while a plan is applied, and others do something ``meanwhile``:
once, ``before`` or ``after`` a request. What a fault puts off is done at the end, with ``late`` in a step ``late``.

An applied plan is ok, unless ``outcome``, ``outcomes`` or ``ok`` declares otherwise. A plan has no errors but
``errors``, or is ``refused`` as a whole. ``warnings``, ``message``, ``text`` (of the plan) and ``says`` (of the
result) are parts of texts; ``text_lacks`` is in none, and ``hides`` is a secret. ``sent``, ``reads`` (of planning)
and ``looks`` (of applying) are how many requests, or the end of each; ``answers`` are their statuses, ``bodies`` what
they carry. ``shows`` is what the server shows: of a clip or channel what is named, of lists all items. Other keys,
such as ``changes``, are complete.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from msauto.concurrency import SystemClock
from msauto.errors import MsautoError
from msauto.model.plan import Limits, Plan
from msauto.model.result import Result
from msauto.plugins.simulator.embedded import (
    Fault,
    ServerState,
    SimDialect,
    Simulator,
    empty_state,
    sample_state,
)
from msauto.report.text import render_plan, render_result
from msauto.secrets.redacted_plans import redact_plan
from tests.cli.command_line import Desk
from tests.stage import Stage, changes, errors
from tests.stories import Given, Others, filled, part_of, stories, texts

PARTS = ("live", "server", "dialect")
MODULES = {"asset", "assert", "rss", "command", "thumbnail", "proxy", "xmp_batch", "block", "tasks"}


@dataclass
class Clock(SystemClock):
    """The real clock, to which a story adds time."""

    passed: timedelta = field(default_factory=timedelta)

    def now(self) -> datetime:
        return datetime.now(UTC) + self.passed

    def monotonic(self) -> float:
        return super().monotonic() + self.passed.total_seconds()


@pytest.fixture(scope="module")
def server() -> Iterator[Simulator]:
    with Simulator(state=empty_state()) as simulator:
        yield simulator


@pytest.mark.parametrize("story", stories("stories", *PARTS))
def test_story(server: Simulator, tmp_path: Path, story: Given) -> None:
    server.state = sample_state() if story["live"].get("sample") else empty_state()
    server.dialect = SimDialect()
    stage = Stage(server, tmp_path, clock=Clock())
    if story["row"]:
        stage.on(story["row"])
    server.dialect = server.dialect.with_values(story["server"])
    stage.dialect = {**stage.dialect, **story["dialect"]}
    server.faults.clear()
    others = Others(server)
    for folder in story["live"].get("folders", []):
        others.news.make_folder(folder)
    for title, clip in story["live"].get("clips", {}).items():
        others.do({"add_clip": title, **clip})
    for name, items in story["live"].get("channels", {}).items():
        server.state.add_channel(name)
        others.do({"channel": name, "items": items})
    for handle, title in story["live"].get("handles", {}).items():
        server.state.handles[handle] = others.news.clip(title)
    for name in story["live"].get("connectors", []):
        others.news.connectors[name] = []
    steps = _Steps(stage, others)
    for number, step in enumerate(story["steps"], 1):
        try:
            steps.take(step)
        except Exception as error:
            error.add_note(f"step {number}: {json.dumps(step, ensure_ascii=False)}")
            raise


class _Steps:
    """Takes the steps of a story, and compares what comes of each."""

    def __init__(self, stage: Stage, others: Others) -> None:
        self._stage, self._others = stage, others
        self._plan, self._tasks, self._known = Plan("", ""), [Given()], Given()
        self._chosen: Given = {}

    def take(self, step: Given) -> None:
        (verb, given), *rest = filled(step, self._known).items()
        said = dict(rest)
        match verb:
            case "apply":
                self._result(self._applied(given, said), said)
            case "plan" if "refused" in said:
                self._refused(
                    [_task(each) for each in (given if isinstance(given, list) else [given])], said
                )
            case "plan":
                self._check(self._planned(given, said), said)
            case "undo":
                self._result(self._during(said, lambda: self._stage.undo(self._run(given))), said)
            case "plan_undo":
                self._check(self._stage.undo(self._run(given), dry=True, **_options(said)), said)
            case "others":
                self._others.do(given)
            case "wait":
                assert isinstance(self._stage.clock, Clock)
                self._stage.clock.passed += timedelta(seconds=given)
            case "server":
                self._stage.sim.dialect = self._stage.sim.dialect.with_values(given)
            case "dialect":
                self._stage.dialect = {**self._stage.dialect, **given}
            case "shows":
                said["shows"] = given
            case "late":
                self._stage.sim.deferred.finish()
            case "file":
                (self._stage.folder / given).write_text(said.pop("content"), encoding="utf-8")
            case "frame_rate":
                self._stage.block = {"frame_rate": given}
            case "version":
                self._stage.version = given
            case "playbook":
                self._stage.write(*(_task(each) for each in given))
            case "command":
                self._command(given, said)
            case _:
                raise ValueError(f"unknown step {step}")
        for name, shown in said.pop("shows", {}).items():
            self._others.check(name, shown)
        assert not said, f"unknown keys {[*said]}"

    def _run(self, name: Any) -> str:
        return name if isinstance(name, str) else self._stage.runs()[-name]

    def _command(self, words: str, said: Given) -> None:
        desk = Desk(self._stage.folder / "desk")
        desk.folder = self._stage.folder  # whose inventory stays
        flags = (
            "-i",
            "inventory.yml",
            "--state-dir",
            "state",
            *(["--yes"] if not words.startswith("plan") else []),
        )
        self._stage.sim.faults.add(*said.pop("faults", []))
        self._stage.sim.clear_log()
        told = desk.run(*words.split(), *flags)
        self._stage.sim.faults.clear()
        assert told.code == said.pop("code", 0), told
        if "sent" in said:
            self._requests([entry.line for entry in self._stage.sent()], said.pop("sent"))

    def _refused(self, tasks: list[Given], said: Given) -> None:
        with pytest.raises(MsautoError) as raised:
            self._stage.plan(*tasks, **_options(said))
        for word in texts(said.pop("refused")):
            assert word in str(raised.value)

    def _planned(self, tasks: Any, said: Given) -> Plan:
        given = tasks if isinstance(tasks, list) else [tasks]
        self._tasks = [_task(each) for each in given]
        self._stage.sim.clear_log()
        options = _options(said)
        self._chosen = {}
        for name in options.keys() & {"tags", "limit"}:
            self._chosen[name] = options.pop(name)
        self._resolved = self._stage.resolved(*self._tasks, **self._chosen)
        self._plan = self._stage.plan_of(self._resolved, **options)
        if "reads" in said:
            self._requests(self._stage.reads(), said.pop("reads"))
        return self._plan

    def _applied(self, tasks: Any, said: Given) -> Result:
        if tasks == "the plan":  # and the stage may be another one since
            self._resolved = self._stage.resolved(*self._tasks, **self._chosen)
        else:
            self._planned(tasks, said)
        return self._during(said, lambda: self._stage.applied(self._plan, self._resolved))

    def _during(self, said: Given, run: Any) -> Result:
        faults = self._stage.sim.faults
        for each in said.pop("meanwhile", []):
            when = "before" if "before" in each else "after"
            times = None if each.get("always") else 1
            act = partial(self._meanwhile, each["do"])
            faults.add(Fault(each[when], when, times, each.get("skip", 0), act))
        faults.add(*said.pop("faults", []))
        self._stage.sim.clear_log()
        result: Result = run()
        self._known[f"RUN{len(self._known) + 1}"] = result.run
        if not said.pop("late", False):
            self._stage.sim.deferred.finish()
        faults.clear()
        return result

    def _meanwhile(self, do: Any, _: ServerState) -> None:
        for each in do if isinstance(do, list) else [do]:
            if isinstance(each, dict) and "wait" in each:
                self.take(each)
            else:
                self._others.do(each)

    def _result(self, result: Result, said: Given) -> None:
        told = [
            (each.target.name, each.outcome, each.message, each.differences)
            for each in result.targets
        ]
        if "outcome" in said:
            assert {each.outcome for each in result.targets} == {said.pop("outcome")}, told
        elif "outcomes" in said:
            assert {each.target.name: each.outcome for each in result.targets} == said.pop(
                "outcomes"
            ), told
        else:
            assert result.ok is said.pop("ok", True), (told, errors(result.plan))
        found = {
            "differences": [
                f"{diff.aspect} {diff.key}".strip()
                for each in result.targets
                for diff in each.differences
            ],
            "notes": [note for each in result.targets for note in each.notes],
            "seen": [each.seen for each in result.targets],
            "unseen": [aspect for each in result.targets for aspect in each.unseen],
        }
        for name in found.keys() & said:
            assert found[name] == said.pop(name), told
        if "difference" in said:
            first = next(diff for each in result.targets for diff in each.differences)
            part_of(said.pop("difference"), {"desired": first.desired, "live": first.live})
        if "says" in said:
            shown = " ".join(" ".join(render_result(result)).split())
            for word in texts(said.pop("says")):
                assert word in shown, shown
        words = " ".join(each.message for each in result.targets)
        for word in texts(said.pop("message", [])):
            assert word in words, words
        if "sent" in said:
            self._requests([entry.line for entry in self._stage.sent()], said.pop("sent"))
        if "bodies" in said:
            assert [entry.body.decode() for entry in self._stage.sent()] == said.pop("bodies")
        if "sent_in_any_order" in said:
            assert sorted(entry.line for entry in self._stage.sent()) == sorted(
                said.pop("sent_in_any_order")
            )
        if "looks" in said:
            self._requests(self._stage.reads(), said.pop("looks"))
        if "answers" in said:
            assert [entry.status for entry in self._stage.sent()] == said.pop("answers")
        self._check(result.plan, {"errors": said.pop("errors", errors(result.plan)), **said}, said)

    def _check(self, plan: Plan, expected: Given, said: Given | None = None) -> None:
        said = expected if said is None else said
        if "hides" in expected:
            plan = redact_plan(plan)
            assert expected["hides"] not in _text(plan) + " ".join((*plan.warnings, *errors(plan)))
        found, wanted = errors(plan), expected.get("errors", [])
        assert len(found) == len(wanted), found
        for error, words in zip(found, wanted, strict=True):
            for word in texts(words):
                assert word in error, error
        for word in texts(expected.get("warnings", [])):
            assert any(word in warning for warning in plan.warnings), plan.warnings
        if expected.keys() & {"text", "text_lacks"}:
            text = _text(plan)
            for word in texts(expected.get("text", [])):
                assert word in text, text
            for word in texts(expected.get("text_lacks", [])):
                assert word not in text, text
        every = [change for target in plan.targets for change in target.changes]
        whole: Given = {
            "changes": changes(plan),
            "requests": plan.requests,
            "basis": [each.basis for each in every],
            "outside": {
                f"{each.aspect} {each.key}": each.outside.left for each in every if each.outside
            },
            "refusals": [each.code for each in plan.refusals],
            "remedies": [each.remedy for each in plan.refusals],
            "no_warnings": not plan.warnings,
            "targets": [target.name for target in plan.targets],
            "places": [[*target.places] for target in plan.targets],
            "left_out": plan.left_out,
            "unchanged": plan.unchanged,
            "skipped": [target.reason for target in plan.skipped],
            "handlers": [each.handler for each in every],
            "pending": [each.pending for each in every],
        }
        for name in whole.keys() & expected:
            assert whole[name] == expected[name], (plan.warnings, changes(plan))
        for name in ("errors", "warnings", "options", "text", "text_lacks", "hides", *whole):
            said.pop(name, None)

    def _requests(self, found: list[str], expected: Any) -> None:
        if isinstance(expected, int):
            assert len(found) == expected, found
            return
        assert len(found) == len(expected), found
        for line, end in zip(found, expected, strict=True):
            assert line.endswith(end), found


def _text(plan: Plan) -> str:
    """The plan as it is read, in one line."""
    return " ".join(" ".join(render_plan(plan)).split())


def _task(given: Given) -> Given:
    if "tasks" in given:
        return {**given, "tasks": [_task(each) for each in given["tasks"]]}
    if MODULES & given.keys():
        return {"name": "A task", **given}
    if "channel" in given:
        return {"name": "The ticker", "rss": given}
    beside = {"name", "tags", "notify", "when", "outside", "vars", "loop"} & given.keys()
    asset = {name: value for name, value in given.items() if name not in beside}
    title = {} if {"title", "select", "id"} & asset.keys() else {"title": "Film"}
    return {"name": "A task", **{name: given[name] for name in beside}, "asset": {**title, **asset}}


def _options(said: Given) -> Given:
    options = dict(said.get("options", {}))
    for name in {"tags", "targets"} & options.keys():
        options[name] = tuple(options[name])
    if "limits" in options:
        limits = options["limits"]
        protected = {"protected": tuple(limits["protected"])} if "protected" in limits else {}
        options["limits"] = Limits(
            **{"delete_assets": 1000, "allow_remove": 1000, **limits, **protected}
        )
    return options
