"""stdout carries the result alone, stderr everything else."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import islice
from typing import IO, Any

import click

from msauto.errors import MsautoError, Problem
from msauto.exit_codes import ERROR, OK
from msauto.report.sanitizing import display_width, visible, visible_lines, without_command

_PIECES = 1000
"""How many pieces of a result are written at a time."""


class OutputError(MsautoError):
    """The result cannot be written to stdout, for example because the disk is full."""


class ReaderGoneError(OutputError):
    """The reader of stdout has closed it (``| head``)."""


def print_result(text: str | Iterable[str]) -> None:
    """Write the result, whole or in pieces, to stdout, with one line end at its end.

    Raises :class:`OutputError`. Afterwards nothing more is written to stdout.
    """
    pieces = iter([text] if isinstance(text, str) else text)
    last = "\n"
    try:
        while more := "".join(islice(pieces, _PIECES)):
            last = more
            _write(sys.stdout, more, nl=False)
        if not last.endswith("\n"):
            _write(sys.stdout, "\n", nl=False)
    except BrokenPipeError as error:
        discard_stdout()
        raise ReaderGoneError(
            "the reader of the output closed it", remedy="use a reader that reads to the end"
        ) from error
    except OSError as error:
        discard_stdout()
        raise OutputError(
            f"cannot write the result: {error.strerror}",
            remedy="free space where the output goes, then repeat",
        ) from error


def print_paged(text: str) -> None:
    """Write a long result: on a terminal with fewer lines, through its pager (``PAGER``)."""
    if (
        sys.stdin.isatty()
        and sys.stdout.isatty()
        and text.count("\n") >= shutil.get_terminal_size().lines
    ):
        # As git does: less alone would show the codes of colours.
        os.environ.setdefault("LESS", "FRX")
        click.echo_via_pager(text)
    else:
        print_result(text)


def report_missing_ledger(folder: str) -> None:
    """Report that a folder given with ``--state-dir`` has no ledger."""
    why = "has no ledger: nothing is known of earlier runs"
    print_message(f"Note: --state-dir {visible(folder)} {why}")


def print_message(text: str, *, rendered: bool = False) -> None:
    """Write a message to stderr, made visible and wrapped unless a report did it; a closed stderr is not an error."""
    lines = text.split("\n") if rendered else _fitted(visible_lines(text))
    text = "\n".join(map(without_command, lines))
    with suppress(OSError):
        _write(sys.stderr, text, nl=not text.endswith("\n"))


def _fitted(lines: list[str]) -> list[str]:
    """Return the lines of a message, wrapped where they are wider than the terminal."""
    width = terminal_width(sys.stderr)
    if width is None or max(map(display_width, lines)) <= width:
        return lines
    from msauto.report.layout import Layout, render_lines, words

    shown = []
    for line in lines:
        indent = len(line) - len(line.lstrip())
        shown.append(words(line, hang=indent + 2))
    return "".join(render_lines(shown, Layout(width=width))).removesuffix("\n").split("\n")


def print_table(
    headers: Sequence[str], rows: Sequence[Sequence[str]], *, no_color: bool, **view: Any
) -> None:
    """Write a table to stdout, which fits the terminal; ``view`` as for ``render_table``."""
    from msauto.report.layout import render_table

    colour = use_colour(sys.stdout, no_color=no_color)
    print_result(
        render_table(headers, rows, colour=colour, width=terminal_width(sys.stdout), **view)
    )


def print_problems(problems: Sequence[Problem], form: str, *, no_color: bool) -> int:
    """Write problems to stdout; return the exit code, which warnings do not change."""
    if form == "json":
        from msauto.report.json import dump, problems_json

        print_result(dump(problems_json(problems)))
    elif form == "gitlab":
        from msauto.report.ci_forms import problems_gitlab
        from msauto.report.json import dump

        print_result(dump(problems_gitlab(problems)))
    elif problems and form == "github":
        from msauto.report.ci_forms import render_github

        print_result(render_github(problems))
    elif problems:
        from msauto.report.text import render_problems

        colour = use_colour(sys.stdout, no_color=no_color)
        print_result(render_problems(problems, colour=colour, width=terminal_width(sys.stdout)))
    return ERROR if any(problem.level == "error" for problem in problems) else OK


def discard_stdout() -> None:
    """Discard what is still buffered for stdout: Python would try to write it at exit, and complain."""
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def use_colour(stream: IO[str], *, no_color: bool) -> bool:
    """Return whether to colour: only on a terminal that can, and without ``--no-color`` and ``NO_COLOR``."""
    return stream.isatty() and not is_dumb() and not no_color and not os.environ.get("NO_COLOR")


def is_dumb() -> bool:
    """Return whether the terminal shows control sequences instead of obeying them."""
    return os.environ.get("TERM") == "dumb"


def terminal_width(stream: IO[str]) -> int | None:
    """Return the columns of the terminal; ``None`` if the stream is not a terminal."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


def can_draw(stream: IO[str]) -> bool:
    """Return whether the encoding of a stream has the signs that reports draw with."""
    try:
        "├┄─━┬┳┤•×→·…".encode(getattr(stream, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _write(stream: IO[str], text: str, *, nl: bool) -> None:
    encoding = getattr(stream, "encoding", None) or "utf-8"  # it may lack characters of a title
    text = text.encode(encoding, "backslashreplace").decode(encoding)
    click.echo(text, file=stream, nl=nl, color=True)
    stream.flush()
