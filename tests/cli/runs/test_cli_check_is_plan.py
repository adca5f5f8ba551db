"""``apply --check`` is ``plan``: the same output, exit code and file, with each flag and each kind of plan."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.cli.command_line import Desk
from tests.tables import unless_one_in

CHANGES = {"asset": {"title": "EP001", "segments": [{"number": 1, "start": 0, "duration": 10}]}}
ERROR = {"asset": {"title": "Nobody", "fields": {"comment": "x"}}}
PLANS: dict[str, tuple[int, list[dict[str, Any]]]] = {
    "changes": (2, [CHANGES]),
    "nothing": (0, [{"asset": {"title": "EP001", "fields": {}}}]),
    "errors": (1, [ERROR]),
    "both": (1, [CHANGES, ERROR]),
    "refused": (4, [{"asset": {"title": "EP001", "state": "absent"}}]),
}
FLAGS = (
    "--format json", "--format markdown", "--format html", "-v", "--detailed-exitcode", "--out kept.json",
    "--forget-pending", "--limit studio-a", "--limit nobody", "--tags none", "--no-color",
    "--server http://127.0.0.1:1", "--config other.toml", "",
)  # fmt: skip
WAYS = [*((flags, "changes") for flags in FLAGS), ("--keep-going", "both")]
WAYS += [
    (flags, plan) for flags in ("", "--detailed-exitcode") for plan in PLANS if plan != "changes"
]


def ways() -> list[Any]:
    """One way in three is fast."""
    return [pytest.param(*way, marks=unless_one_in(3, number)) for number, way in enumerate(WAYS)]


@pytest.mark.parametrize(("flags", "plan"), ways())
def test_check_is_plan(desk: Desk, flags: str, plan: str) -> None:
    desk.write("msauto.toml", 'inventory = "inventory.yml"\n')
    desk.write("other.toml", 'inventory = "inventory.yml"\nforks = 1\n')
    code, tasks = PLANS[plan]
    desk.play(*tasks)
    found = []
    for command in ("plan", "apply --check"):
        said = desk.run(*command.split(), "play.yml", *flags.split())
        kept = desk.folder / "kept.json"
        texts = said.out, said.err, kept.read_text() if kept.exists() else ""
        found.append((said.code, *(re.sub(r"\d\d:\d\d:\d\d(\.\d+)?", "", text) for text in texts)))
        assert kept.exists() == ("--out" in flags)
        kept.unlink(missing_ok=True)
    assert found[0] == found[1]
    assert flags != "--detailed-exitcode" or found[0][0] == code
