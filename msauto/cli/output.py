"""stdout carries the result alone, stderr everything else."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import IO

import click

from msauto.errors import MsautoError


class OutputError(MsautoError):
    """The result could not be written to stdout: a full disk, for one."""


class ReaderGoneError(OutputError):
    """Whoever read stdout has gone (``| head``)."""


def give(text: str) -> None:
    """Write the result to stdout, with one line end at its end.

    Raises :class:`OutputError`. Afterwards nothing more is written there.
    """
    try:
        _write(sys.stdout, text)
    except BrokenPipeError as error:
        drop_stdout()
        raise ReaderGoneError("whoever read the result has gone", remedy="let all of it be read") from error
    except OSError as error:
        drop_stdout()
        raise OutputError(
            f"the result could not be written: {error.strerror}", remedy="make room where the output goes, and repeat"
        ) from error


def say(text: str) -> None:
    """Write a message to stderr; that nobody can read it is no reason to fail."""
    with suppress(OSError):
        _write(sys.stderr, text)


def drop_stdout() -> None:
    """Let what is still to be written to stdout go nowhere: Python would try, and complain, when it exits."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def colour_on(stream: IO[str], *, no_color: bool) -> bool:
    """Colour only where a terminal shows it, and nobody said no (``--no-color``, ``NO_COLOR``)."""
    return not no_color and not os.environ.get("NO_COLOR") and stream.isatty()


def _write(stream: IO[str], text: str) -> None:
    encoding = getattr(stream, "encoding", None) or "utf-8"  # a terminal may not know all signs of a title
    text = text.encode(encoding, "backslashreplace").decode(encoding)
    click.echo(text, file=stream, nl=not text.endswith("\n"), color=True)
    stream.flush()
