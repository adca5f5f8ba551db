"""One runner for ``tests/cases/sessions/*.yml``: what is typed in a folder, what it prints, and what the server gets.

A file has ``stories`` (see :mod:`tests.stories`), and ``files`` that all of them begin with, beside ``inventory.yml``
for the server ``studio-a``. A step can write ``files``: an empty value removes one, and a name with ``/`` at its end
is a folder. It can write a ``play`` of tasks, a ``comment`` for EP001, or ``hosts`` of the inventory. It can set
``env`` variables, the time ``now``, the switches of the ``server`` and its ``faults``, and do what ``others`` do.
``$URL`` is the address of the server with its ``$PORT``, ``$OTHER`` that of a second one, ``$PYTHON`` the program, and
``$FOLDER`` where it runs. A plan as JSON fits its published schema.

``run`` is a command, in the folder ``at``; ``typed`` is the input at a terminal. Its exit ``code`` is 0 unless
declared. ``out`` and ``err`` are parts of what it prints; an empty text means that it prints nothing. ``error`` are
those of one error with a remedy, ``lacks`` what is in neither. ``json`` has values by their place, such as
``jobs.0.code`` or ``targets.*.name``; ``keep`` names some for later steps; ``into`` is a file for the output.
``secret`` is a text that is neither printed nor kept in a file. ``golden`` is a file of ``golden/`` with the whole
output, ``golden_error`` that of stderr. ``sent`` and ``asked`` are how many writes, and how many requests in all.
``shows`` is what the server shows then; ``there`` and ``gone`` are files.
"""

from __future__ import annotations

import getpass
import json
import shlex
import socket
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from msauto.concurrency import SystemClock
from msauto.plugins.simulator.embedded import Simulator
from msauto.version import __version__
from tests.cli.command_line import Desk, Said, check_golden
from tests.stories import Given, Others, filled, stories, texts

SCHEMAS = Path(__file__).parents[2] / "schemas"
PLAN = Draft202012Validator(json.loads((SCHEMAS / "plan.json").read_text(encoding="utf-8")))


@pytest.mark.parametrize("session", stories("sessions", "files", "settings", one_in=3))
def test_session(
    request: pytest.FixtureRequest,
    desk: Desk,
    sim: Simulator,
    monkeypatch: pytest.MonkeyPatch,
    session: Given,
) -> None:
    if session["settings"].get("fast"):
        request.getfixturevalue("hurried")
    known = {
        "URL": sim.url,
        "PYTHON": sys.executable,
        "FOLDER": str(desk.folder),
        "PORT": str(sim.port),
    }
    if "$OTHER" in json.dumps(session, default=str):
        known["OTHER"] = request.getfixturevalue("other_sim").url
    steps = Steps(desk, sim, monkeypatch, known)
    for number, step in enumerate([{"files": session["files"]}, *session["steps"]]):
        try:
            steps.take(filled(step, known))
        except Exception as error:
            error.add_note(f"step {number}: {json.dumps(step, ensure_ascii=False, default=str)}")
            raise


class Steps:
    """Takes the steps of a session, and compares what comes of each."""

    def __init__(
        self, desk: Desk, sim: Simulator, monkeypatch: pytest.MonkeyPatch, known: Given
    ) -> None:
        self._desk, self._sim, self._monkeypatch, self._known = desk, sim, monkeypatch, known
        self._others = Others(sim)

    def take(self, step: Given) -> None:
        (verb, given), *rest = step.items()
        more = dict(rest)
        match verb:
            case "run":
                self._run(given, more)
            case "files":
                for name, content in given.items():
                    self._write(name, content)
            case "comment":
                self._desk.comment(given, **more)
                more = {}
            case "play":
                self._desk.play(*given, **more)
                more = {}
            case "hosts":
                self._desk.inventory(given, **more)
                more = {}
            case "env":
                self._desk.environment.update(given)
            case "now":
                self._monkeypatch.setattr(
                    SystemClock, "now", lambda _: datetime.fromisoformat(given)
                )
            case "faults":
                self._sim.faults.clear()
                self._sim.faults.add(*given)
            case "server":
                self._sim.dialect = self._sim.dialect.with_values(given)
            case "others":
                self._others.do(given)
            case "shows":
                more["shows"] = given
            case _:
                raise ValueError(f"unknown step {step}")
        for name, shown in more.pop("shows", {}).items():
            self._others.check(name, shown)
        assert not more, f"unknown keys {[*more]}"

    def _write(self, name: str, content: Any) -> None:
        path = self._desk.folder / name
        if name.endswith("/"):
            path.mkdir(parents=True)
        elif content is None:
            path.unlink()
        else:
            self._desk.write(name, content)

    def _desk_at(self, folder: str) -> Desk:
        """A desk in a folder below, which has the same state."""
        desk = Desk.__new__(Desk)
        desk.folder, desk.url = self._desk.folder / folder, self._desk.url
        desk.environment = {"XDG_STATE_HOME": str(self._desk.state), **self._desk.environment}
        return desk

    def _run(self, words: str, more: Given) -> None:
        self._sim.clear_log()
        desk = self._desk
        if "at" in more:
            desk = self._desk_at(more.pop("at"))
        said = desk.run(*shlex.split(words), typed=more.pop("typed", None))
        assert said.code == more.pop("code", 0), said
        if "into" in more:
            self._desk.write(more.pop("into"), said.out)
        self._printed(said, more)
        for count, found in (("sent", self._sim.writes()), ("asked", self._sim.log)):
            if count in more:
                assert len(found) == more.pop(count), [entry.line for entry in found]
        files = self._desk.files()
        assert {*texts(more.pop("there", []))} <= files, files
        assert not {*texts(more.pop("gone", []))} & files, files

    def _hidden(self) -> Iterator[tuple[str, str]]:
        """What differs between machines and versions, and what stands for it."""
        user = getpass.getuser()
        who = f"{user}@{socket.gethostname()}"
        yield "who".ljust(len(who)), "who"  # its column is as wide
        yield who, "USER@HOST"
        yield f"user             {user}", "user             USER"
        yield str(self._desk.folder), "FOLDER"
        for before in ('"msauto": "', " msauto "):
            yield before + __version__, f"{before}VERSION"

    def _printed(self, said: Said, more: Given) -> None:
        for key, text in (("golden", said.out), ("golden_error", said.err)):
            if key in more:
                check_golden(more.pop(key), text, *self._hidden())
        for stream, text in (("out", said.out), ("err", said.err)):
            if more.get(stream) == "":
                assert text == "", said
                del more[stream]
            for word in texts(more.pop(stream, [])):
                assert word in text, said
        assert [
            word for word in texts(more.pop("lacks", [])) if word in said.out + said.err
        ] == [], said
        if "secret" in more:
            secret = more.pop("secret")
            kept = {
                name: (self._desk.folder / name).read_bytes()
                for name in self._desk.files() - {"msauto.toml"}
            }
            assert secret not in said.out + said.err, said
            assert [name for name, content in kept.items() if secret.encode() in content] == []
        if "error" in more:
            said.one_error(*texts(more.pop("error")), "→")
        if said.out.startswith('{\n  "format": "msauto-plan"'):
            PLAN.validate(said.json)
        for place, value in more.pop("json", {}).items():
            assert _at(said.json, place) == value, said
        for name, place in more.pop("keep", {}).items():
            self._known[name] = _at(said.json, place)


def _at(data: Any, place: str) -> Any:
    """Return the value at a place of a document: ``a.0.b``, or of each item: ``a.*.b``."""
    first, _, rest = place.partition(".")
    if first == "":
        return data
    if first == "*":
        return [_at(each, rest) for each in data]
    if first == "#":
        return len(data)
    return _at(data[int(first)] if isinstance(data, list) else data[first], rest)
