"""The help of commands: flags in sections, the rare ones of a long list with ``--help --all``; styled on a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import click

from msauto.errors import did_you_mean

SECTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "What": (
        "titles", "folders", "channels", "in_folder", "recursive", "links", "mam", "title", "xmp_field", "view",
        "batch", "number", "since", "every", "max_age", "failed", "target", "tags", "skip_tags", "extra_vars",
        "origin", "keep_going", "role", "forget_pending", "listed", "seed", "dialect", "faults",
    ),
    "Where": (
        "inventory", "server", "limit", "database", "host", "port", "state_file", "on", "config", "state_dir",
    ),
    "Limits": (
        "scratch", "scratch_channel", "check", "now", "yes", "allow_delete", "allow_remove", "allow_requests", "window",
        "override_freeze", "secret_commands", "lock_timeout", "forks",
    ),
    "Output": (
        "scheduler", "out", "content", "force", "detailed_exitcode", "form", "summary", "stills", "notify", "log_file",
        "events", "progress", "verbose", "no_color",
    ),
}  # fmt: skip
"""The sections of the help, and the parameters of flags in their order."""
_RARE: Final = {
    "skip_tags", "forget_pending", "listed", "on", "config", "state_dir", "window", "override_freeze", "lock_timeout",
    "secret_commands", "forks", "stills", "events", "progress", "no_color", "allow_requests",
}  # fmt: skip
"""What the help of a command with many flags shows only with ``--all``."""
_MANY: Final = 20
_ALL: Final = "--all"
_WIDEST: Final = 30
"""Columns of flags and their values; what is longer has its description on the next line."""
_TERM: Final = re.compile(r"(?:\S+(?:,| /) )*\S+")
_RANGE: Final = re.compile(r" +\[[\dx<>=]+\]$")


def in_sections(options: Iterable[click.Option]) -> dict[str, list[click.Option]]:
    """Return the options that are not hidden by section, in the order of the table; ``--help`` is the last."""
    sections: dict[str, list[click.Option]] = {}
    for option in sorted(options, key=_place_of):
        if not option.hidden:
            _, section = _place_of(option)
            sections.setdefault(section, []).append(option)
    return sections


def _place_of(option: click.Option) -> tuple[int, str]:
    """Return the number of an option in the table, and its section."""
    number = 0
    for section, names in SECTIONS.items():
        if option.name in names:
            return number + names.index(option.name), section
        number += len(names)
    return number, "Output"


class HelpFormatter(click.HelpFormatter):
    """Writes headings, commands and flags in bold, and values in cyan; click removes that except on a terminal."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """Write the first line."""
        super().write_usage(prog, args, click.style(prefix or "Usage:", bold=True) + " ")

    def write_heading(self, heading: str) -> None:
        """Write the heading of a section."""
        self.write(click.style(f"{heading}:", bold=True) + "\n")

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = _WIDEST, col_spacing: int = 2
    ) -> None:
        """Write flags or commands, each with its description."""
        styled = []
        for term, text in rows:
            names = _TERM.match(term)
            if names is not None:
                value = term[names.end() :]
                styled.append(
                    (click.style(names[0], bold=True) + click.style(value, fg="cyan"), text)
                )
        super().write_dl(styled, col_max, col_spacing)


def write_sections(
    formatter: click.HelpFormatter, sections: Mapping[str, Sequence[tuple[str, str]]]
) -> None:
    """Write sections of terms with their descriptions, all in one column."""
    terms = [term for rows in sections.values() for term, _ in rows]
    width = min(_WIDEST, max(map(len, terms)))
    for name, rows in sections.items():
        with formatter.section(name):
            formatter.write_dl([(term.ljust(width), text) for term, text in rows])


class HelpContext(click.Context):
    """The context of a command."""

    formatter_class = HelpFormatter


class HelpCommand(click.Command):
    """A command with its flags in sections. One with many shows the usual ones, and all with ``--help --all``."""

    context_class = HelpContext

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take ``--all`` as a flag of the help."""
        asks_for_help = not {*args}.isdisjoint(ctx.help_option_names)
        if asks_for_help and _ALL in args and len(self._shown(ctx)) > _MANY:
            ctx.meta[_ALL] = True
            args = [argument for argument in args if argument != _ALL]
        return super().parse_args(ctx, args)

    def _shown(self, ctx: click.Context) -> list[click.Option]:
        options = []
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and not param.hidden:
                options.append(param)
        return options

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the flags."""
        options = self._shown(ctx)
        written = options
        if len(options) > _MANY and _ALL not in ctx.meta:
            written = [option for option in options if option.name not in _RARE]
        sections = {}
        for name, of_section in in_sections(written).items():
            sections[name] = [_row(option, ctx) for option in of_section]
        if len(sections) == 1:
            sections = {"Options": [*sections.popitem()[1]]}
        write_sections(formatter, sections)
        hidden = len(options) - len(written)
        if hidden:
            formatter.write_paragraph()
            formatter.write_text(f"{hidden} more flags: {ctx.command_path} --help --all")


def _row(option: click.Option, ctx: click.Context) -> tuple[str, str]:
    names, text = option.get_help_record(ctx) or ("", "")
    return names, _RANGE.sub("", text)


class HelpGroup(click.Group):
    """A group of commands; their descriptions are not cut."""

    context_class = HelpContext
    command_class = HelpCommand

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; the error for an unknown one names what msauto has instead, or the nearest command."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            from msauto.cli.other_tools import COMMANDS

            commands = self.list_commands(ctx)
            group = f"{ctx.info_name}." if ctx.parent else ""
            remedy = COMMANDS.get(f"{group}{args[0]}") or did_you_mean(
                args[0], commands, cutoff=0.7
            )
            if group and not remedy:
                remedy = f"available: {', '.join(commands)}"
            hint = remedy and f"\n  → {remedy}"
            raise click.UsageError(f"no such command: {args[0]}{hint}", ctx) from None

    def sections(self, ctx: click.Context) -> Mapping[str, Sequence[tuple[str, str]]]:
        """Return the commands with their descriptions, in sections."""
        commands = []
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None:
                commands.append((name, command.get_short_help_str(limit=200)))
        return {"Commands": commands}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, then the flags."""
        records = [param.get_help_record(ctx) for param in self.get_params(ctx)]
        flags = [record for record in records if record is not None]
        write_sections(formatter, {**self.sections(ctx), "Options": flags})
