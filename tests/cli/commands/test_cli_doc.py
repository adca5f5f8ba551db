"""``msauto doc`` and ``msauto completion``: every topic, and scripts that shells read."""

from __future__ import annotations

import shutil
import subprocess
from typing import get_args

import pytest

from msauto.cli.commands.doc import _topics as all_topics
from msauto.model.fields import MimeType
from msauto.model.timecode import Timecode
from msauto.playbook.reference import module
from msauto.playbook.schema.play import GROUPS, MODULES, AssetArgs
from msauto.playbook.templates.reference import positions
from tests.cli.command_line import MSAUTO, Desk
from tests.cli.test_cli_streams_and_codes import on_a_terminal

TOPICS = [*all_topics()]


def test_the_list_names_every_topic(away: Desk) -> None:
    sourced = away.run("doc")
    assert (sourced.code, sourced.err) == (0, "")
    assert [line.split()[0] for line in sourced.out.splitlines()[1:]] == TOPICS
    assert {*MODULES} - {*GROUPS} <= set(TOPICS)
    assert {"filters", "facts", "positions"} <= set(TOPICS)


@pytest.mark.parametrize("topic", TOPICS)
def test_every_topic_is_shown(away: Desk, topic: str) -> None:
    text = away.run("doc", topic)
    assert (text.code, text.err) == (0, "")
    assert text.out.startswith(f"{topic}\n")
    assert "\x1b" not in text.out


def test_a_module_is_told_whole(away: Desk) -> None:
    text = away.run("doc", "asset").out
    for name, field in AssetArgs.model_fields.items():
        assert f"\n  {name}  (" in text
        assert " ".join((field.description or "").split()) in " ".join(text.split())
    assert "markers[].track" in text
    for example in module("asset").examples:
        assert "".join(f"  {line}\n" for line in example.splitlines()) in text


def test_choices_and_needs_are_told(away: Desk) -> None:
    select = away.run("doc", "select").out
    assert all(f"`{kind}`" in select for kind in get_args(MimeType))
    assert "channel  (text, needed)" in away.run("doc", "rss").out
    assert "when  (an expression, or a list of them, no template)" in away.run("doc", "task").out


def test_lines_are_no_wider_than_the_page(away: Desk) -> None:
    for topic in ("asset", "play", "rss"):
        prose = away.run("doc", topic).out.partition("Examples")[0]
        assert max(map(len, prose.splitlines())) <= 110


@pytest.mark.scale
@pytest.mark.parametrize(("lines", "paged"), [("24", True), ("1000", False)])
def test_what_is_longer_than_the_terminal_goes_through_its_pager(
    away: Desk, lines: str, paged: bool
) -> None:
    away.environment |= {"PAGER": "sed s/^/paged:/", "LINES": lines, "NO_COLOR": "1"}
    code, text = on_a_terminal(away, "doc", "asset", typed=b"")
    assert (code, text.startswith("paged:asset"), "\x1b" in text) == (0, paged, False)
    prose = text.replace("paged:", "").partition("Examples")[0]
    assert max(map(len, prose.splitlines())) <= 100  # the columns of that terminal


@pytest.mark.scale
def test_less_gets_what_git_gives_it(away: Desk) -> None:
    away.environment |= {"PAGER": "env", "LINES": "24"}
    assert "LESS=FRX" in on_a_terminal(away, "doc", "asset")[1]
    away.environment["LESS"] = "-i"
    assert "LESS=-i" in on_a_terminal(away, "doc", "asset")[1]


@pytest.mark.parametrize(
    ("word", "entry"),
    [
        ("marker", "asset: markers"),
        ("csv", "lookups: csv"),
        pytest.param("segments", "asset: segments[].start", marks=pytest.mark.scale),
        pytest.param("delete", "asset: state", marks=pytest.mark.scale),
        pytest.param("fps", "facts: fps", marks=pytest.mark.scale),
    ],
)
def test_another_word_is_searched_for_in_all_topics(away: Desk, word: str, entry: str) -> None:
    assert f"\n  {entry}\n" in away.run("doc", word).out


def test_positions_are_what_they_come_to(away: Desk) -> None:
    text = away.run("doc", "positions").out
    assert "00:01:00;02  →  an error at 25 fps, frame 1800 at 29.97 fps" in text
    assert {Timecode.parse(entry.example).kind for entry in positions()} == {
        "frames",
        "non_drop",
        "drop",
        "seconds",
    }


# Completion ----------------------------------------------------------------------------------------------------------


@pytest.mark.scale
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_that_of_click(away: Desk, shell: str) -> None:
    sourced = away.run("completion", shell)
    assert sourced.code == 0
    away.environment["_MSAUTO_COMPLETE"] = f"{shell}_source"
    program = shutil.which("msauto", path=str(away.folder)) or "msauto"
    asked = subprocess.run(
        [
            MSAUTO[0],
            "-c",
            f"import sys; sys.argv = [{program!r}]; from msauto.cli.main import main; main()",
        ],
        env=away.surroundings(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert sourced.out.strip() == asked.stdout.strip()
    assert f"_MSAUTO_COMPLETE={shell}_complete" in sourced.out
