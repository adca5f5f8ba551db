"""One runner for ``tests/cases/remedies``: each remedy is followed to the letter, and then it works.

A case is a world that is wrong. ``tasks`` are those of the only play, ``play`` has more of its keys, and ``files`` are
beside ``inventory.yml``, with their ``modes``. ``server`` has more of the block of its server, ``host`` more variables.
``sim`` has switches of the simulator, ``faults`` its faults, ``others`` what other users did before. There are ``env``
variables, the time ``now``, and commands that ran ``before``. The command (``run``) prints the ``remedy``, letter by
letter.

``then`` is the same world as its user has it who followed the remedy: the command works. ``$RUN`` is the run that the
remedy names. Where a remedy names several ways, ``then`` is a list, and each begins with the world as it was. Keys of
mappings are replaced one by one; an empty value removes a key or a file. ``others_then`` and ``files_then`` come
after the commands ``before``. ``code`` is how the command ends: it is 1 for what is wrong, and 0 then.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from datetime import datetime
from typing import Any

import pytest

from msauto.concurrency import SystemClock
from msauto.plugins.simulator.embedded import Simulator
from tests.cli.command_line import Desk, Said
from tests.remedies import followed
from tests.stories import Given, Others, filled, texts
from tests.tables import unless_one_in

ARROW = "→ "
PLAN = "plan play.yml -i inventory.yml"


ONE_IN = 20
"""One way in so many of each file is followed always, and the others among the slow tests."""


def cases() -> list[Any]:
    found = []
    followed_ways: Counter[str] = Counter()
    for case in followed():
        for number, then in enumerate(case.ways, 1):
            name = f"{case.file}: {case.about} {number}"
            marks = unless_one_in(ONE_IN, followed_ways[case.file])
            found.append(pytest.param(case.world, case.remedy, then, id=name, marks=marks))
            followed_ways[case.file] += 1
    return found


@pytest.mark.parametrize(("wrong", "remedy", "then"), cases())
def test_a_remedy_works(
    desk: Desk,
    sim: Simulator,
    request: pytest.FixtureRequest,
    wrong: Given,
    remedy: str,
    then: Given,
) -> None:
    world = _World(desk, sim, request)
    refused = world.run({"code": 1, **wrong})
    assert filled(remedy, world.known) in remedies_of(refused), refused
    world.run({"code": 0, **_replaced(wrong, then)})


def remedies_of(said: Said) -> list[str]:
    """Return what follows the arrows of an output, each in one line."""
    found = []
    for line in (said.out + said.err).splitlines():
        if line.lstrip().startswith(ARROW):
            found.append(line.lstrip().removeprefix(ARROW))
    return found


class _World:
    """A folder and a server, as a case describes them."""

    def __init__(self, desk: Desk, sim: Simulator, request: pytest.FixtureRequest) -> None:
        self._desk, self._sim, self._request = desk, sim, request
        self._is_new = True
        self.known = {"URL": sim.url, "PORT": str(sim.port), "FOLDER": str(desk.folder)}

    def run(self, world: Given) -> Said:
        given = filled(world, self.known)
        if given.get("fast"):
            self._request.getfixturevalue("hurried")
        if "now" in given:
            now = datetime.fromisoformat(given["now"])
            monkeypatch = self._request.getfixturevalue("monkeypatch")
            monkeypatch.setattr(SystemClock, "now", lambda _: now)
        self._write(given)
        self._set_up_server(given)
        self._desk.environment = {**given.get("env", {})}
        if self._is_new:
            for command in texts(given.get("before", [])):
                said = self._desk.run(*shlex.split(command))
                assert said.code in (0, 3), (command, said)
        self._is_new = False
        Others(self._sim).do(given.get("others_then", []))
        self._write_files(given.get("files_then", {}))
        arguments = shlex.split(given.get("run", PLAN))
        said = self._desk.run(*arguments, typed=given.get("typed"))
        run = re.search(r"\d{8}T\d{6}Z-[0-9a-f]{4}$", said.err, re.MULTILINE)
        if run:
            self.known["RUN"] = run[0]
        assert said.code == given["code"], said
        assert "Traceback" not in said.err, said
        return said

    def _write(self, given: Given) -> None:
        server = {"url": self._sim.url}
        server |= given.get("server", {})
        host = {"server": _without_empty(server), "database": "NEWS"}
        host |= given.get("host", {})
        self._desk.inventory({"studio-a": _without_empty(host)})
        play = {"hosts": "all", "tasks": given.get("tasks", [])}
        play |= given.get("play", {})
        self._desk.write("play.yml", [_without_empty(play)])
        self._write_files(given.get("files", {}))
        for name, mode in given.get("modes", {}).items():
            path = self._desk.folder / name
            path.chmod(int(mode, 8))

    def _write_files(self, files: Given) -> None:
        for name, content in files.items():
            path = self._desk.folder / name
            if content is None:
                path.unlink(missing_ok=True)
            elif name.endswith("/"):
                path.mkdir(parents=True, exist_ok=True)
            else:
                self._desk.write(name, content)

    def _set_up_server(self, given: Given) -> None:
        self._sim.dialect = self._sim.dialect.with_values(given.get("sim", {}))
        self._sim.faults.clear()
        self._sim.faults.add(*given.get("faults", []))
        if self._is_new:
            Others(self._sim).do(given.get("others", []))


def _without_empty(values: Given) -> Given:
    return {name: value for name, value in values.items() if value is not None}


def _replaced(wrong: Given, then: Given) -> Given:
    """Put what a user changed in place of what was wrong: mappings key by key, all else as a whole."""
    right = {**wrong, "others_then": [], "files_then": {}}
    right.pop("code", None)
    for key, value in then.items():
        if isinstance(value, dict):
            value = {**right.get(key, {}), **value}
        right[key] = value
    return right
