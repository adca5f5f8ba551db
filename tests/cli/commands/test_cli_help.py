"""``--help``: flags in sections, only those that a command uses, short for the commands with many, plain in a pipe."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import click
import pytest
from click.testing import CliRunner

from msauto.cli.help import SECTIONS
from msauto.cli.main import group
from tests.cli.command_line import Desk

HEADINGS: Final = ("What", "Where", "Limits", "Output", "Options")


def walked(
    command: click.Command, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if not isinstance(command, click.Group):
        yield words, command
        return
    for name in command.list_commands(click.Context(command)):
        inner = command.get_command(click.Context(command), name)
        assert inner is not None
        yield from walked(inner, (*words, name))


ALL_COMMANDS = dict(walked(group))


def help_of(*words: str, width: int = 80, colour: bool = False) -> str:
    done = CliRunner().invoke(
        group, [*words, "--help"], prog_name="msauto", terminal_width=width, color=colour
    )
    assert done.exit_code == 0, done.output
    return done.output


def flags_in(text: str) -> set[str]:
    return set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)(?= |$)", text, re.MULTILINE))


@pytest.mark.parametrize("words", ALL_COMMANDS, ids=" ".join)
def test_every_flag_has_one_section(words: tuple[str, ...]) -> None:
    placed = [name for names in SECTIONS.values() for name in names]
    assert len(placed) == len(set(placed))
    options = {each.name for each in ALL_COMMANDS[words].params if isinstance(each, click.Option)}
    assert options <= set(placed)


@pytest.mark.parametrize("words", ALL_COMMANDS, ids=" ".join)
def test_the_whole_help_has_every_flag_that_is_used_in_its_section(words: tuple[str, ...]) -> None:
    command = ALL_COMMANDS[words]
    flags = {"--help"}
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            flags.add(parameter.opts[-1])
    text = help_of(*words, "--all") if len(flags) > 20 else help_of(*words)
    assert flags_in(text) == flags
    headings = re.findall(r"^(\w+):$", text, re.MULTILINE)
    assert headings == [heading for heading in HEADINGS if heading in headings]
    assert all(len(line) <= 80 for line in text.splitlines())
    assert text.replace("\n", "").isprintable()


def test_the_help_of_plan_fits_a_terminal_and_names_where_the_rest_is() -> None:
    text = help_of("plan")
    assert len(text.splitlines()) <= 25
    assert (
        sum(line.startswith("  ") for line in text.splitlines()) == len(flags_in(text)) + 1
    )  # one line each
    assert {"--inventory", "--limit", "--out", "--format"} <= flags_in(text)
    assert text.endswith("\n15 more flags: msauto plan --help --all\n")
    assert len(flags_in(help_of("plan", "--all"))) == len(flags_in(text)) + 15


def test_all_is_a_flag_of_the_help_alone(desk: Desk) -> None:
    desk.run("plan", "--all", "play.yml").one_error("no such option: --all", "msauto plan --help")
    assert desk.run("history", "--all").code == 0
    assert "--all " in help_of("history")


@pytest.mark.parametrize(
    ("words", "unused"),
    [
        (("show", "assets"), {"--tags", "--forks", "--state-dir", "--verbose"}),
        (("history",), {"--inventory", "--server", "--extra-vars", "--forks"}),
        (("validate",), {"--forks", "--state-dir", "--verbose"}),
        (("undo", "--all"), {"--tags", "--skip-tags"}),
    ],
)
def test_flags_that_change_nothing_are_not_shown(words: tuple[str, ...], unused: set[str]) -> None:
    assert not flags_in(help_of(*words)) & unused


def test_headings_and_flags_are_styled_on_a_terminal_alone() -> None:
    styled = help_of("plan", colour=True)
    assert "\x1b[1mWhere:\x1b[0m" in styled
    assert "\x1b[1m-i, --inventory\x1b[0m\x1b[36m FILE|DIR" in styled
    assert click.unstyle(styled) == help_of("plan")
    for words in ((), ("batch",), ("plan",)):
        assert "\x1b" not in help_of(*words)


def test_the_commands_of_a_group_are_described_whole() -> None:
    for name in ("batch", "schedule", "show", "state"):
        assert "..." not in help_of(name).partition("Commands:")[2]
