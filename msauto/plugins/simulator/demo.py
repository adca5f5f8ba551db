"""``msauto demo``: a complete example against an embedded media server, in a scratch folder."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager
from pathlib import Path

import click
from msgspec import Struct

from msauto.cli.flags import no_color_flag
from msauto.cli.help import HelpCommand
from msauto.cli.output import print_result, use_colour
from msauto.cli.plan_and_apply import prompt
from msauto.errors import MsautoError
from msauto.exit_codes import INTERRUPTED, OK, REFUSED
from msauto.report.layout import paint


class DemoStep(Struct, frozen=True):
    """One command of the demo: what is printed before it, and its expected exit code."""

    comment: str
    command: str
    exit_code: int = OK


STEPS = (
    DemoStep(
        "The crew has delivered an episode. This is what the server knows about it.",
        "show asset 'Evening News raw' -i inventory.yml",
    ),
    DemoStep(
        "site.yml declares the desired state for tonight. What would change? Planning only reads.",
        "plan site.yml",
    ),
    DemoStep(
        "Apply it. Afterwards each target is read again and compared with the desired state.",
        "apply site.yml --yes",
    ),
    DemoStep(
        "A second plan is empty: applying twice changes nothing.",
        "plan site.yml --detailed-exitcode",
    ),
    DemoStep(
        "Delete two expired promos. Deleting needs a limit, so this is refused.",
        "apply promos.yml --yes",
        REFUSED,
    ),
    DemoStep("Allow two deletions.", "apply promos.yml --yes --allow-delete 2"),
    DemoStep(
        "Once more: an absent asset that is missing already is unchanged.", "apply promos.yml --yes"
    ),
)


@click.command("demo", cls=HelpCommand)
@no_color_flag
def command(*, no_color: bool) -> int:
    """Show a complete example on an embedded media server; it touches nothing outside a scratch folder.

    On a terminal it waits for Enter between its scenes, but not where the variable CI is set.
    """
    from msauto.plugins.simulator.embedded import Simulator

    scratch = tempfile.TemporaryDirectory(prefix="msauto-demo-")
    with scratch as name, Simulator(restore_seconds=1.0) as server:
        folder = Path(name)
        shutil.copytree(_examples(), folder / "playbooks")
        clips = sum(len([*database.clips()]) for database in server.state.databases.values())
        print_result(
            f"A media server with {clips} clips listens at {server.url}; the playbooks are copied to a scratch folder."
        )
        environment = {"STUDIO_A_URL": server.url, "XDG_STATE_HOME": str(folder / "state")}
        if no_color:
            environment["NO_COLOR"] = "1"
        with chdir(folder / "playbooks"), _environment(environment):
            pausing = sys.stdin.isatty() and sys.stdout.isatty() and not os.environ.get("CI")
            for number, step in enumerate(STEPS):
                pausing = pausing and (number == 0 or _pause(no_color=no_color))
                _run(step)
        requests = f"{len(server.log)} requests, {len(server.writes())} of them writes"
        print_result(
            f"\nThe server received {requests}.\nNext: read playbooks/news.yml, then docs/tutorial.md."
        )
    return OK


def _pause(*, no_color: bool) -> bool:
    """Wait for Enter before the next scene; return whether to wait again."""
    colour = use_colour(sys.stderr, no_color=no_color)
    hint = paint(
        "Press Enter for the next scene (q: all that is left, without a pause) ",
        "dim",
        colour=colour,
    )
    return prompt(f"\n{hint}").lower() != "q"


def _run(step: DemoStep) -> None:
    from msauto.cli.main import main

    print_result(f"\n# {step.comment}\n$ msauto {step.command}")
    code = main(shlex.split(step.command))
    if code == INTERRUPTED:
        raise KeyboardInterrupt("the demo was not finished")
    if code != step.exit_code:
        message = (
            f"the demo failed: `msauto {step.command}` ended with {code}, not {step.exit_code}"
        )
        raise MsautoError(
            message, remedy="this is a bug in msauto: report it with the output above"
        )
    if code:
        print_result(f"(exit code {code})")


def _examples() -> Path:
    package = Path(__file__).resolve().parents[2]
    for candidate in (package / "examples", package.parent / "playbooks"):
        if (candidate / "site.yml").is_file():
            return candidate
    raise MsautoError("the example playbooks are not installed", remedy="reinstall msauto")


@contextmanager
def _environment(more: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(more)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
