"""The flags that commands share, and the value that they come to."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from msauto.cli.runs.saved_plans import settings_folder
from msauto.errors import MsautoError
from msauto.playbook.resolve import ResolveOptions
from msauto.playbook.schema.settings import MOST_FORKS
from msauto.playbook.settings.settings import NAME, Settings, load_settings

FORMATS = ("text", "json", "markdown", "html")


@dataclass(frozen=True, slots=True)
class CommandLineDefaults:
    """What was said on the command line of that for which the settings have defaults."""

    inventories: tuple[str, ...] = ()
    forks: int | None = None


@dataclass(frozen=True, slots=True)
class Flags:
    """The shared flags (contract, «Commands»), with the settings file already read.

    ``settings_file`` is where it is, or would be, as an absolute path; ``given`` what was said on the command line.
    """

    options: ResolveOptions
    given: CommandLineDefaults
    state_dir: Path
    format: str
    verbosity: int
    no_color: bool
    config: str | None
    settings: Settings = field(default_factory=Settings)
    settings_file: Path = Path(NAME)
    forks: int = 8
    forget_pending: bool = False

    def under(self, settings: Settings, file: Path) -> Flags:
        """Return the flags under other settings: what was given wins over them, and the ledger stays where it is."""
        by_hand = self.given.inventories or self.options.server_url
        options = replace(
            self.options,
            inventories=self.given.inventories if by_hand else settings.inventories,
            lookup_folders=settings.lookup_folders,
            download_folders=settings.download_folders,
            file_mib=settings.file_mib,
        )
        forks = self.given.forks or settings.forks or 8
        return replace(self, options=options, settings=settings, forks=forks, settings_file=file.absolute())


def _state_dir(given: str | None, settings: Settings) -> Path:
    """Return where the ledger is: the flag, the settings, ``$XDG_STATE_HOME/msauto``, ``~/.local/state/msauto``.

    One for each user and not for each folder: two runs from two folders must meet at the same locks.
    """
    if given:
        return Path(given).expanduser()  # no shell does it in --state-dir=~/msauto
    if settings.state_dir:
        return Path(settings.state_dir)
    home = os.environ.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local" / "state") / "msauto"


forget_pending_flag = click.option(
    "--forget-pending", is_flag=True, help="What earlier runs left open (handlers, lost commands) counts as settled."
)
keep_going_flag = click.option(
    "--keep-going", is_flag=True, help="Leave out targets that cannot be planned; a run then ends with 3."
)


def plan_options(when: str = "") -> tuple[Callable[[Callable[..., Any]], Callable[..., Any]], ...]:
    """Return the flags of a plan that is not applied, with ``when`` they are heard before their help."""
    return (
        click.option(
            "--out",
            type=click.Path(dir_okay=False),
            metavar="FILE",
            help=f"{when}Keep the plan, for msauto apply FILE; - is stdout.",
        ),
        click.option("--detailed-exitcode", is_flag=True, help=f"{when}Exit with 2 where there are changes."),
    )


_OPTIONS: tuple[Callable[[Callable[..., Any]], Callable[..., Any]], ...] = (
    click.option("-i", "--inventory", multiple=True, metavar="FILE|DIR", help="Inventory; may be given several times."),
    click.option("--server", metavar="URL", help="One server, named by its host, instead of an inventory."),
    click.option("-e", "--extra-vars", multiple=True, metavar="K=V|@FILE", help="Variables that win over all others."),
    click.option("-l", "--limit", metavar="PATTERN", help="Only these hosts."),
    click.option("-t", "--tags", multiple=True, metavar="TAGS", help="Only tasks with one of these tags."),
    click.option("--skip-tags", multiple=True, metavar="TAGS", help="No tasks with one of these tags."),
    click.option("-f", "--forks", type=click.IntRange(1, MOST_FORKS), help="Targets at a time (default 8)."),
    click.option("--format", "form", type=click.Choice(FORMATS), default="text", help="Form of the result."),
    click.option("--state-dir", metavar="DIR", help="Where the ledger is kept."),
    click.option("--config", metavar="FILE", help="Settings, instead of msauto.toml beside the playbooks."),
    click.option("-v", "--verbose", count=True, help="More: -v the requests, -vv where each change comes from."),
    click.option("--no-color", is_flag=True, help="No colour, as NO_COLOR does."),
)


def formats(*names: str) -> Callable[[click.Command], click.Command]:
    """Give ``--format`` of one command the choices that it has, in place of those of all."""

    def change(command: click.Command) -> click.Command:
        for parameter in command.params:
            if parameter.name == "form":
                parameter.type = click.Choice(names)
        return command

    return change


def shared_flags(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the shared flags, handed to it as one ``flags`` value beside its own arguments."""

    @functools.wraps(function)
    def command(
        *,
        inventory: tuple[str, ...],
        server: str | None,
        extra_vars: tuple[str, ...],
        limit: str | None,
        tags: tuple[str, ...],
        skip_tags: tuple[str, ...],
        forks: int | None,
        form: str,
        state_dir: str | None,
        config: str | None,
        verbose: int,
        no_color: bool,
        **own: Any,
    ) -> Any:
        playbooks: tuple[str, ...] = tuple(own.get("playbooks") or ())
        beside = settings_folder(playbooks or tuple(own.get("paths") or ()))
        file = Path(config) if config else beside / NAME
        settings = load_settings(config, beside)
        given = CommandLineDefaults(inventory, forks)
        options = ResolveOptions(
            playbooks=playbooks,
            server_url=server,
            extra_vars=extra_vars,
            limit=limit,
            tags=_split(tags),
            skip_tags=_split(skip_tags),
            env=dict(os.environ),
            now=datetime.now(UTC),
        )
        flags = Flags(
            options=options,
            given=given,
            state_dir=_state_dir(state_dir, settings),
            format=form,
            verbosity=verbose,
            no_color=no_color,
            config=config,
        )
        return function(flags=flags.under(settings, file), **own)

    for option in reversed(_OPTIONS):
        command = option(command)
    return command


STDOUT = "-"
"""As the name of a file to write: stdout."""


def for_stdout(flags: Flags, out: str | None) -> Flags:
    """Return the flags of a plan that is kept in ``out``: where that is stdout, the plan file is all that is on it."""
    if out != STDOUT:
        return flags
    if flags.format not in {"text", "json"}:
        raise MsautoError(
            f"--out - and --format {flags.format} would both write to stdout",
            remedy="name a file: --out FILE; or leave --format out",
        )
    return replace(flags, format="json")


def require_text_or_json(flags: Flags) -> None:
    """Refuse the forms that only plans and results have."""
    if flags.format not in {"text", "json"}:
        raise MsautoError(f"--format {flags.format} is for plans and results alone", remedy="--format text, or json")


def _split(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())
