"""One runner for ``tests/cases/stories/*.yml``: what msauto and other users do to a server in turns, over HTTP.

A file has ``stories``, and what all of them share: ``live`` is the content of the server (``sample``: that of the
embedded one), ``server`` has its switches, ``dialect`` that of the inventory. A story may add to each. ``each`` has
rows: a story runs once for each, with its values in place of ``$name``. A file may have rows for all its stories.

A step can ``apply`` or ``plan`` tasks; the keys of ``asset:`` are enough, and ``the plan`` is that of the step before.
It can ``undo`` or ``plan_undo`` a run: the ``last`` one, or one by its number. ``others`` is what other users do, see
:class:`Others`; ``wait`` are seconds that pass; ``server`` and ``dialect`` change. ``playbook`` writes tasks, and
``command`` is one of the command line with its exit ``code``. ``options`` are those of planning. ``faults`` hold while
a plan is applied, and others do something ``meanwhile``: once, ``before`` or ``after`` a request.

An applied plan is ok, unless ``outcome``, ``outcomes`` or ``ok`` declares otherwise. A plan has no errors but
``errors``, or is ``refused`` as a whole. ``warnings``, ``message``, ``text`` (of the plan) and ``says`` (of the result)
are parts of texts; ``text_lacks`` is in none, and ``hides`` is a secret. ``sent``, ``reads`` (of planning) and
``looks`` (of applying) are how many requests, or the end of each; ``answers`` are their statuses. ``shows`` is what
the server shows: of a clip or channel what is named, of lists all items. Other keys, such as ``changes``, are complete.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from msauto.concurrency import SystemClock
from msauto.errors import MsautoError
from msauto.model.plan import Limits, Plan
from msauto.model.result import Result
from msauto.report.text import render_plan, render_result
from msauto.secrets.redacted_plans import redact_plan
from msauto.simulator import (
    Fault,
    Item,
    ServerState,
    SimChannel,
    SimClip,
    SimDialect,
    SimMarker,
    SimSegment,
    Simulator,
    empty_state,
    sample_state,
)
from msauto.simulator.faults import parse_change
from msauto.simulator.rss import put_item
from msauto.simulator.state import SimDatabase, SimEntry
from tests.cli.command_line import Desk
from tests.stage import Stage, changes, errors

FILES = sorted((Path(__file__).resolve().parents[1] / "cases" / "stories").glob("*.yml"))
PARTS = ("live", "server", "dialect")
MODULES = {"asset", "rss", "command", "thumbnail", "proxy", "xmp_batch", "block", "tasks"}
Given = dict[str, Any]


@dataclass
class Clock(SystemClock):
    """The real clock, to which a story adds time."""

    passed: timedelta = field(default_factory=timedelta)

    def now(self) -> datetime:
        return datetime.now(UTC) + self.passed

    def monotonic(self) -> float:
        return super().monotonic() + self.passed.total_seconds()


def _stories() -> Iterator[Any]:
    for path in FILES:
        shared = yaml.safe_load(path.read_text(encoding="utf-8"))
        for story, common in product(shared["stories"], shared.get("each", [{}])):
            for row in story.get("each", [{}]):
                whole = {name: {**shared.get(name, {}), **story.get(name, {})} for name in PARTS}
                ways = " ".join(str(value) for value in (common | row).values())
                name = f"{path.stem}: {story['about']}" + (f" ({ways})" if ways else "")
                yield pytest.param(_filled({**whole, "steps": story["steps"]}, common | row), id=name)


def _filled(value: Any, row: Mapping[str, Any]) -> Any:
    """Put the values of a row in place of their names; ``and`` holds more of its mapping."""
    if isinstance(value, dict):
        filled = {_filled(name, row): _filled(each, row) for name, each in value.items()}
        more = filled.pop("and", {})
        return filled | more
    if isinstance(value, list):
        return [_filled(each, row) for each in value]
    if isinstance(value, str) and value[1:] in row and value[0] == "$":
        return row[value[1:]]
    for name, text in row.items() if isinstance(value, str) else ():
        value = value.replace(f"${name}", str(text))
    return value


@pytest.fixture(scope="module")
def server() -> Iterator[Simulator]:
    with Simulator(state=empty_state()) as simulator:
        yield simulator


@pytest.mark.parametrize("story", [*_stories()])
def test_story(server: Simulator, tmp_path: Path, story: Given) -> None:
    server.state = sample_state() if story["live"].get("sample") else empty_state()
    server.dialect = SimDialect().with_values(story["server"])
    server.faults.clear()
    others = Others(server)
    for folder in story["live"].get("folders", []):
        others.news.make_folder(folder)
    for title, clip in story["live"].get("clips", {}).items():
        others.do({"add_clip": title, **clip})
    for name, items in story["live"].get("channels", {}).items():
        server.state.add_channel(name)
        others.do({"channel": name, "items": items})
    stage = Stage(server, tmp_path, dialect=story["dialect"], clock=Clock())
    steps = _Steps(stage, others)
    for number, step in enumerate(story["steps"], 1):
        try:
            steps.take(step)
        except Exception as error:
            error.add_note(f"step {number}: {json.dumps(step, ensure_ascii=False)}")
            raise


class Others:
    """What other users do: each change names its clip, link, channel or item first, then what of it is new.

    ``add_clip``, ``remove_clip``, ``add_link`` (to a clip), ``remove_link``, ``move`` (``title``, ``folder``), ``put``
    (a ``text`` in a file), or a text such as ``swap:A:B``, see :mod:`msauto.simulator.faults`. Lists are replaced;
    those that begin with ``+`` are added to.
    """

    def __init__(self, sim: Simulator) -> None:
        self._sim = sim

    @property
    def news(self) -> SimDatabase:
        return self._sim.state.databases["NEWS"]

    def do(self, change: Any) -> None:
        if isinstance(change, list):
            for each in change:
                self.do(each)
            return
        if isinstance(change, str):
            parse_change(change)(self._sim.state)
            return
        (what, name), *rest = change.items()
        attributes = dict(rest)
        match what:
            case "add_clip":
                known = {each: attributes.pop(each) for each in ("frames", "create_time") if each in attributes}
                self._describe(self.news.add_clip(name, attributes.pop("folder", "Raw"), **known), attributes)
            case "clip":
                self._describe(self.news.clip(name), attributes)
            case "remove_clip":
                self.news.remove_clip(self.news.clip(name))
            case "add_link":
                self.news.add_entry(self.news.clip(name), attributes["folder"], attributes["title"])
            case "remove_link":
                self.news.remove_link(self.entry(name))
            case "link":
                self.entry(name).fields.update(attributes)
            case "move":
                folder = tuple(attributes["folder"].split("/")) if "folder" in attributes else None
                self.news.change_entry(self.entry(name), attributes.get("title"), folder)
            case "channel":
                self.channel(name).items[:] = [_item(each) for each in attributes["items"]]
            case "put":
                put_item(self.channel(), name, attributes["text"].encode(), self._sim.dialect)
            case "item":
                (item,) = (each for each in self.channel().items if each.guid == name)
                for attribute, value in attributes.items():
                    setattr(item, attribute, value)
            case _:
                raise ValueError(f"unknown change {change}")

    def channel(self, name: str = "ticker") -> SimChannel:
        return self._sim.state.channels[name]

    def entry(self, title: str) -> SimEntry:
        """The entry with a title; a link wins over a clip."""
        return self.news.find_all(title)[-1]

    def _describe(self, clip: SimClip, attributes: Mapping[str, Any]) -> None:
        for name, value in attributes.items():
            match name:
                case "fields":
                    clip.home.fields.update(value)
                case "xmp":
                    clip.xmp.update(value)
                case "links":
                    for link in value:
                        self.news.add_entry(clip, link["folder"], link["title"])
                case "markers":
                    clip.markers[:] = map(_marker, value)
                case "+markers":
                    clip.markers += [_marker({"uid": clip.new_uid(), **each}) for each in value]
                case "segments":
                    clip.segments[:] = map(_segment, value)
                case "+segments":
                    clip.segments += map(_segment, value)
                case _:
                    setattr(clip, name, tuple(value) if isinstance(value, list) else value)


def _marker(given: Given) -> SimMarker:
    texts = {name: str(value) for name, value in given.items() if name not in ("uid", "at")}
    return SimMarker(given["uid"], given["at"], {"track": "Cue Point", **texts})


def _segment(given: Given) -> SimSegment:
    titles = given.get("titles", [given["title"]] if "title" in given else [])
    more = {name: given[name] for name in ("track", "rating", "keywords") if name in given}
    return SimSegment(given["number"], given["start"], given.get("duration", 10), titles, **more)


def _item(given: Given) -> Item:
    text = given.get("text", "")
    texts = {"title": text.partition("\n")[0], "description": text}
    more = {name: value for name, value in given.items() if name not in ("file", "text")}
    return Item(given["file"], text.encode(), **{"guid": given["file"].partition(".")[0], **texts, **more})


class _Steps:
    """Takes the steps of a story, and compares what comes of each."""

    def __init__(self, stage: Stage, others: Others) -> None:
        self._stage, self._others = stage, others
        self._plan, self._tasks = Plan("", ""), [Given()]

    def take(self, step: Given) -> None:
        (verb, given), *rest = step.items()
        said = dict(rest)
        match verb:
            case "apply":
                self._result(self._applied(given, said), said)
            case "plan" if "refused" in said:
                self._refused([_task(each) for each in (given if isinstance(given, list) else [given])], said)
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
            case "playbook":
                self._stage.write(*(_task(each) for each in given))
            case "command":
                self._command(given, said)
            case _:
                raise ValueError(f"unknown step {step}")
        for name, shown in said.pop("shows", {}).items():
            self._compare(name, shown)
        assert not said, f"unknown keys {[*said]}"

    def _run(self, name: Any) -> str:
        return name if isinstance(name, str) else self._stage.runs()[-name]

    def _command(self, words: str, said: Given) -> None:
        desk = Desk(self._stage.folder / "desk")
        desk.folder = self._stage.folder  # whose inventory stays
        flags = ("-i", "inventory.yml", "--state-dir", "state", *(["--yes"] if not words.startswith("plan") else []))
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
        for word in _texts(said.pop("refused")):
            assert word in str(raised.value)

    def _planned(self, tasks: Any, said: Given) -> Plan:
        given = tasks if isinstance(tasks, list) else [tasks]
        self._tasks = [_task(each) for each in given]
        self._stage.sim.clear_log()
        self._plan = self._stage.plan(*self._tasks, **_options(said))
        if "reads" in said:
            self._requests(self._stage.reads(), said.pop("reads"))
        return self._plan

    def _applied(self, tasks: Any, said: Given) -> Result:
        chosen = {name: value for name, value in _options(said).items() if name == "tags"}
        plan = self._plan if tasks == "the plan" else self._planned(tasks, said)
        return self._during(said, lambda: self._stage.applied(plan, self._stage.resolved(*self._tasks, **chosen)))

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
        told = [(each.target.name, each.outcome, each.message, each.differences) for each in result.targets]
        if "outcome" in said:
            assert {each.outcome for each in result.targets} == {said.pop("outcome")}, told
        elif "outcomes" in said:
            assert {each.target.name: each.outcome for each in result.targets} == said.pop("outcomes"), told
        else:
            assert result.ok is said.pop("ok", True), (told, errors(result.plan))
        found = {
            "differences": [
                f"{diff.aspect} {diff.key}".strip() for each in result.targets for diff in each.differences
            ],
            "notes": [note for each in result.targets for note in each.notes],
            "seen": [each.seen for each in result.targets],
            "unseen": [aspect for each in result.targets for aspect in each.unseen],
        }
        for name in found.keys() & said:
            assert found[name] == said.pop(name), told
        if "difference" in said:
            first = next(diff for each in result.targets for diff in each.differences)
            _part_of(said.pop("difference"), {"desired": first.desired, "live": first.live})
        shown = " ".join(" ".join(render_result(result)).split())
        for word in _texts(said.pop("says", [])):
            assert word in shown, shown
        words = " ".join(each.message for each in result.targets)
        for word in _texts(said.pop("message", [])):
            assert word in words, words
        if "sent" in said:
            self._requests([entry.line for entry in self._stage.sent()], said.pop("sent"))
        if "looks" in said:
            self._requests(self._stage.reads(), said.pop("looks"))
        if "answers" in said:
            assert [entry.status for entry in self._stage.sent()] == said.pop("answers")
        self._check(result.plan, {"errors": said.pop("errors", errors(result.plan)), **said}, said)

    def _check(self, plan: Plan, expected: Given, said: Given | None = None) -> None:
        said = expected if said is None else said
        found, wanted = errors(plan), expected.get("errors", [])
        assert len(found) == len(wanted), found
        for error, words in zip(found, wanted, strict=True):
            for word in _texts(words):
                assert word in error, error
        for word in _texts(expected.get("warnings", [])):
            assert any(word in warning for warning in plan.warnings), plan.warnings
        text = _text(plan)
        assert [word for word in _texts(expected.get("text", [])) if word not in text] == [], text
        assert [word for word in _texts(expected.get("text_lacks", [])) if word in text] == [], text
        if "hides" in expected:
            hidden = redact_plan(plan)
            assert expected["hides"] not in _text(hidden) + " ".join((*hidden.warnings, *errors(hidden)))
        every = [change for target in plan.targets for change in target.changes]
        whole: Given = {
            "changes": changes(plan),
            "requests": plan.requests,
            "basis": [each.basis for each in every],
            "outside": {f"{each.aspect} {each.key}": each.outside.left for each in every if each.outside},
            "refusals": [each.code for each in plan.refusals],
            "no_warnings": not plan.warnings,
            "targets": [target.name for target in plan.targets],
            "places": [[*target.places] for target in plan.targets],
            "left_out": plan.left_out,
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

    def _compare(self, name: str, expected: Any) -> None:
        news = self._others.news
        if name == "clips":
            assert sorted(clip.title for clip in news.clips()) == expected
        elif isinstance(expected, list):
            _match([_shown_item(each) for each in self._others.channel(name).items], expected)
        else:
            clip = news.clip(name)
            for what, value in expected.items():
                if what in ("markers", "segments", "links"):
                    _match(_SHOWN[what](clip), value)
                elif what in ("fields", "xmp"):
                    texts: Mapping[str, Any] = clip.home.fields if what == "fields" else clip.xmp
                    assert {each: texts.get(each, "") for each in value} == value
                elif what == "folder":
                    assert "/".join(clip.home.folder) == value
                else:
                    assert getattr(clip, what) == value


def _text(plan: Plan) -> str:
    """The plan as it is read, in one line."""
    return " ".join(" ".join(render_plan(plan)).split())


def _match(found: list[Given], expected: list[Any]) -> None:
    """Each has its own, in any order; of each only what is named counts. ``and others``: there may be more."""
    left = list(found)
    for each in expected:
        if each == "and others":
            return
        same = next((one for one in left if {name: one.get(name, "") for name in each} == each), None)
        assert same is not None, (each, found)
        left.remove(same)
    assert left == [], found


def _part_of(expected: Any, found: Any) -> None:
    """Of mappings, what is named counts."""
    if isinstance(expected, dict) and isinstance(found, Mapping):
        for name, value in expected.items():
            _part_of(value, found.get(name))
        return
    assert found == expected


def _shown_item(item: Item) -> Given:
    return {name: getattr(item, name) for name in ("file", "guid", "title", "description", "link", "pub_date")}


_SHOWN: dict[str, Any] = {
    "markers": lambda clip: [{"uid": each.uid, "at": each.pos, **each.fields} for each in clip.markers],
    "segments": lambda clip: [
        {name: getattr(each, name) for name in ("number", "start", "duration", "titles", "track", "rating", "keywords")}
        | {"title": "".join(each.titles)}
        for each in clip.segments
    ],
    "links": lambda clip: [
        {"folder": "/".join(each.folder), "title": each.title, **each.fields} for each in clip.entries[1:]
    ],
}


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
        options["limits"] = Limits(**{"delete_assets": 1000, "allow_remove": 1000, **limits, **protected})
    return options


def _texts(given: Any) -> list[str]:
    return [given] if isinstance(given, str) else list(given)
