"""``msauto plan``: read, compare, print; writes nothing anywhere except ``--out``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from msauto.cli.flags import PLAN_FORMS, Flags, WholeNumber, flag, option, run_planning_flags
from msauto.cli.help import HelpCommand
from msauto.cli.interrupts import importing
from msauto.cli.output import print_result
from msauto.cli.run_flags import plan_flags, with_output
from msauto.cli.watch import RunWatch, watch_flags
from msauto.exit_codes import OK
from msauto.report.sanitizing import visible

if TYPE_CHECKING:
    from msauto.playbook.resolve import PlayOutline


@click.command("plan", cls=HelpCommand)
@click.argument("playbooks", nargs=-1, type=click.Path(), metavar="[PLAYBOOK]...")
@plan_flags()
@flag("keep_going")
@flag("forget_pending")
@flag("window")
@option(
    "--stills N",
    "With --format html: show up to N stills, of deleted clips, new and moved markers, and segments.",
    type=WholeNumber(1, 500),
)
@option("--list-hosts", "Only list the hosts of each play, offline.", "listed", flag_value="hosts")
@option("--list-tasks", "Only list the tasks of each play, offline.", "listed", flag_value="tasks")
@option("--list-tags", "Only list the tags of each play, offline.", "listed", flag_value="tags")
@watch_flags
@run_planning_flags(*PLAN_FORMS)
def command(
    *, flags: Flags, playbooks: tuple[str, ...], listed: str | None, watch: RunWatch, **own: Any
) -> int:
    """Show what would change: reads the servers and writes nothing."""
    if listed is not None:
        return _list(flags, listed)
    flags = with_output(flags, own["out"])
    if own["stills"] and flags.format != "html":
        raise click.UsageError("--stills shows pictures only in HTML: add --format html")
    with importing():
        from msauto.api.attempts import Attempt
        from msauto.api.run import RunOptions
        from msauto.cli.plan_and_apply import RunDialog

    shown = {name: own[name] for name in ("out", "detailed_exitcode", "stills")}
    try:
        attempt = Attempt(None, playbooks)
        return RunDialog(
            flags, RunOptions.of(own), attempt, watch, check=True, **shown
        ).load_and_run()
    except KeyboardInterrupt:
        raise KeyboardInterrupt("planning only reads; nothing was sent") from None


def _list(flags: Flags, listed: str) -> int:
    """Print the hosts, tasks or tags of each play."""
    with importing():
        from msauto.playbook.resolve import outline

    plays = outline(flags.inputs.resolving)
    if flags.format == "json":
        from msgspec import to_builtins

        from msauto.report.json import dump

        print_result(dump(to_builtins(plays)))
        return OK
    texts = ["\n".join([*_play_lines(play, listed), ""]) for play in plays]
    print_result("\n".join(texts))
    return OK


def _play_lines(play: PlayOutline, listed: str) -> Iterator[str]:
    from msauto.report.texts import plural

    heading = f"{visible(play.name)}  ("
    if not play.name.startswith(f"{play.file}:"):
        heading += f"{visible(play.file)}, "
    yield f"{heading}{plural(len(play.hosts), 'host')})"
    for name in _names(play, listed):
        yield f"  {visible(name)}"


def _names(play: PlayOutline, listed: str) -> Iterable[str]:
    """Return the hosts, the tags or the tasks of a play."""
    if listed == "hosts":
        return play.hosts
    tags = set()
    tasks = []
    for task in play.tasks:
        tags.update(task.tags)
        shown_tags = f"  [{', '.join(task.tags)}]" if task.tags else ""
        tasks.append(f"{task.module}  {task.name}{shown_tags}")
    return sorted(tags) if listed == "tags" else tasks
