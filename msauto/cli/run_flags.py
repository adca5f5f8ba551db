"""The flags of ``plan``, ``apply`` and ``undo``, and what a command gets from them."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from msauto.api.options import OPTIONS
from msauto.cli.flags import Decorator, Flags, flag, option, with_options
from msauto.cli.interrupts import importing
from msauto.cli.output import print_message
from msauto.cli.watch import STDOUT, RunWatch
from msauto.errors import MsautoError


def plan_flags(condition: str = "") -> Decorator:
    """Return the flags of a plan that is not applied; ``condition`` is put before their help."""
    saved = f"{condition}Save the plan for `apply FILE`; - is stdout."
    options = (
        option("--out FILE", saved),
        option("--detailed-exitcode", f"{condition}Exit with 2 for changes, 4 if refused."),
    )
    return lambda function: with_options(function, options)


_OPTIONS: tuple[Decorator, ...] = (
    option("-y, --yes", "Do not ask."),
    option("--check", "Plan only: the same as msauto plan."),
    plan_flags("With --check: "),
    *(flag(option.keyword) for option in OPTIONS.values() if option.consent),
)


def run_flags(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the flags of a run as a ``dialog``; apply it below ``shared_flags``."""

    @functools.wraps(function)
    def command(*, flags: Flags, watch: RunWatch, **own: Any) -> Any:
        if own["override_freeze"] is not None and not own["override_freeze"].strip():
            raise click.BadParameter("the reason is empty", param_hint="--override-freeze")
        with importing():
            from msauto.api.attempts import Attempt
            from msauto.api.loading import with_past_runs
            from msauto.api.run import RunOptions
            from msauto.cli.plan_and_apply import RunDialog

        if not own["check"] and (own["out"] is not None or own["detailed_exitcode"]):
            raise click.UsageError(
                "--out and --detailed-exitcode need --check: the plan is not applied"
            )
        attempt = click.get_current_context().find_object(Attempt)
        assert attempt is not None
        attempt.inputs, attempt.check = flags.inputs, own["check"]
        flags = with_output(flags, own["out"])
        attempt.inputs = with_past_runs(flags.inputs)
        attempt.playbooks = attempt.inputs.named
        shown = {name: own[name] for name in ("yes", "check", "out", "detailed_exitcode")}
        flags = replace(flags, inputs=attempt.inputs)
        return function(dialog=RunDialog(flags, RunOptions.of(own), attempt, watch, **shown))

    return with_options(command, _OPTIONS)


def recorded(function: Callable[..., int]) -> Callable[..., int]:
    """Record every call of a command that applies; apply it above ``shared_flags``, to record their errors as well."""

    @functools.wraps(function)
    def command(**given: Any) -> int:
        with importing():
            from msauto.api.attempts import Attempt

        named = (f"undo {given['undo']}",) if given.get("undo") else ()
        folder: str | None = given["state_dir"]
        place = Path(os.path.expanduser(folder)) if folder else None  # noqa: PTH111 - no error for an unknown user
        attempt = Attempt(place, tuple(given.get("playbooks") or ()) or named, tell=print_message)
        click.get_current_context().obj = attempt
        with attempt.recorded():
            attempt.code = function(**given)
        return attempt.code

    return command


def with_output(flags: Flags, out: str | None) -> Flags:
    """Return the flags for a plan written to ``out``: on stdout there is only the plan file."""
    if out != STDOUT:
        return flags
    if flags.format not in {"text", "json"}:
        raise MsautoError(
            f"--out - and --format {flags.format} would both write to stdout",
            remedy="name a file with --out FILE, or remove --format",
        )
    return replace(flags, format="json")
