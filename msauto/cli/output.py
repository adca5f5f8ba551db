"""stdout carries the result alone, stderr everything else."""

from __future__ import annotations

import os
import sys
from typing import IO

import click


def give(text: str) -> None:
    """Write the result to stdout, with one line end at its end."""
    _write(sys.stdout, text)


def say(text: str) -> None:
    """Write a message to stderr."""
    _write(sys.stderr, text)


def colour_on(stream: IO[str], *, no_color: bool) -> bool:
    """Colour only where a terminal shows it, and nobody said no (``--no-color``, ``NO_COLOR``)."""
    return not no_color and not os.environ.get("NO_COLOR") and stream.isatty()


def _write(stream: IO[str], text: str) -> None:
    click.echo(text, file=stream, nl=not text.endswith("\n"), color=True)
    stream.flush()
