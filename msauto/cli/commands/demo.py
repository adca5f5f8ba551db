"""``msauto demo``: the whole story against an embedded media server, in a scratch folder."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from msauto.cli.commands.simulate import require_simulator
from msauto.cli.output import give
from msauto.errors import MsautoError


@dataclass(frozen=True, slots=True)
class DemoStep:
    """One command of the story: what is said before it, and the exit code that it must end with."""

    says: str
    command: str
    ends: int = 0


STORY = (
    DemoStep(
        "An episode has come in from the crew. This is what the server knows of it.",
        "show asset 'Evening News raw' -i inventory.yml",
    ),
    DemoStep(
        "site.yml says what tonight needs. What would change? Planning only reads.",
        "plan site.yml",
    ),
    DemoStep(
        "Let it be so. Each target is read again afterwards, and compared with what was wanted.", "apply site.yml --yes"
    ),
    DemoStep("Planned again, there is nothing to do: that is the point.", "plan site.yml --detailed-exitcode"),
    DemoStep(
        "Two promos have had their day. Deleting is refused until somebody says how many.", "apply promos.yml --yes", 4
    ),
    DemoStep("Now somebody says it.", "apply promos.yml --yes --allow-delete 2"),
    DemoStep("And a third time: what is absent and not there is unchanged.", "apply promos.yml --yes"),
)


@click.command("demo", short_help="Show it all, in a scratch folder.")
@click.option("--no-color", is_flag=True, help="No colour, as NO_COLOR does.")
def command(*, no_color: bool) -> int:
    """Show the main job on an embedded media server, as a story; nothing outside a scratch folder is touched."""
    require_simulator()
    from msauto.simulator import Simulator

    with _scratch() as folder, Simulator(restore_seconds=1.0) as server:
        clips = sum(1 for database in server.state.databases.values() for _ in database.clips())
        give(
            f"A media server with {clips} clips listens at {server.url}; the playbooks are copied to a scratch folder."
        )
        surroundings = {"STUDIO_A_URL": server.url, "XDG_STATE_HOME": str(folder / "state")}
        with _standing_in(folder / "playbooks", surroundings, no_color=no_color):
            for context in STORY:
                _play(context)
        writes = server.writes()
        give(
            f"\nThe server has seen {len(server.log)} requests, {len(writes)} of them writes. That is the whole story."
        )
        give("Next: read playbooks/news.yml, then docs/tutorial.md.")
    return 0


def _play(context: DemoStep) -> None:
    from msauto.cli.main import main

    give(f"\n# {context.says}\n$ msauto {context.command}")
    code = main(shlex.split(context.command))
    if code == 130:
        raise KeyboardInterrupt("the story is not over")
    if code != context.ends:
        raise MsautoError(f"the story broke: `msauto {context.command}` ended with {code}, not {context.ends}")
    if code:
        give(f"(exit code {code})")


@contextmanager
def _scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="msauto-demo-") as name:
        folder = Path(name)
        shutil.copytree(_examples(), folder / "playbooks")
        yield folder


def _examples() -> Path:
    package = Path(__file__).resolve().parents[2]
    for candidate in (package / "examples", package.parent / "playbooks"):
        if (candidate / "site.yml").is_file():
            return candidate
    raise MsautoError("the example playbooks are not installed", remedy="reinstall msauto")


@contextmanager
def _standing_in(folder: Path, environment: Mapping[str, str], *, no_color: bool) -> Iterator[None]:
    """Run as a user would who stands in the folder: its settings and its own ledger."""
    before, where = dict(os.environ), Path.cwd()
    os.environ.update(environment)
    if no_color:
        os.environ["NO_COLOR"] = "1"
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(where)
        os.environ.clear()
        os.environ.update(before)
