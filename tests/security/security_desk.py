"""A desk for the tests of security: a server behind a password, and everything that msauto prints or writes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msauto.plugins.simulator.embedded import Simulator, empty_state
from tests.cli.command_line import Desk, Said

CANARY = "cAnArY§7Q"
FORMATS = ("text", "json", "markdown", "html")


@contextmanager
def server(*dialect: str) -> Iterator[Simulator]:
    """A server with little content."""
    state = empty_state()
    news = state.databases["NEWS"]
    news.add_clip("Film", "Raw", frames=100)
    news.add_clip("Other", "Raw", frames=100)
    state.add_channel("ticker")
    with Simulator(state=state, dialect=dialect) as simulator:
        yield simulator


def repository(folder: Path, url: str, **block: Any) -> Desk:
    """A repository of playbooks in ``folder/repo``; beside it is a file that must not be touched."""
    (folder / "repo" / ".git").mkdir(parents=True)
    (folder / "outside.txt").write_text(CANARY)
    (folder / "outside.csv").write_text(f"a,b\n{CANARY},2\n")
    desk = Desk(folder / "repo", url)
    desk.inventory({"studio-a": {"server": {"url": url, **block}, "database": "NEWS"}})
    return desk


def plan_and_apply(desk: Desk, play: str) -> list[Said]:
    """Everything that can be asked for with a playbook, in every form."""
    flags = ("-i", "inventory.yml", "--state-dir", "state")
    sourced = [desk.run("validate", play, "inventory.yml")]
    sourced += [desk.run("plan", play, *flags, "--format", form, "-vv") for form in FORMATS]
    sourced += [desk.run("plan", play, *flags, "--out", "plan.json")]
    sourced += [
        desk.run("apply", play, *flags, "--yes", "--format", form, "-vv") for form in FORMATS
    ]
    sourced += [
        desk.run("history", "--state-dir", "state"),
        desk.run("history", "last", "--state-dir", "state"),
    ]
    sourced += [
        desk.run("vars", "studio-a", "-i", "inventory.yml"),
        desk.run("undo", "last", *flags, "--yes"),
    ]
    return sourced


def leaks(
    desk: Desk, sourced: list[Said], *secrets: str, spare: frozenset[str] = frozenset()
) -> list[str]:
    """Return where a secret is found: in the output, or in any file of the desk except those spared."""
    found = [
        f"said {n}: {each.out}{each.err}"
        for n, each in enumerate(sourced)
        if _holds(each.out + each.err, secrets)
    ]
    files = (
        path for path in sorted(desk.folder.rglob("*")) if path.is_file() and path.name not in spare
    )
    return found + [
        str(path) for path in files if _holds(path.read_bytes().decode("utf-8", "replace"), secrets)
    ]


def _holds(text: str, secrets: tuple[str, ...]) -> bool:
    return any(secret in text or json.dumps(secret)[1:-1] in text for secret in secrets)


def forge(path: Path, change: Any) -> None:
    """Change a plan file."""
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
