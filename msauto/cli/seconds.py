"""Seconds on the command line: a finite number, and nobody waits for ever by a slip."""

from __future__ import annotations

import click

_LONGEST = 86_400.0  # seconds: a day


def read_seconds(context: click.Context, option: click.Parameter, text: str) -> float:
    """Read a number of seconds from 0 to a day: a callback for click."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= _LONGEST:  # false for nan as well
        message = f"{text!r} is no number of seconds between 0 and {_LONGEST:.0f} (a day)"
        raise click.BadParameter(message, ctx=context, param=option)
    return seconds
