"""What ``plan``, ``apply`` and ``undo`` share: they plan, show, ask, apply, and show the result."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from click.core import ParameterSource
from msgspec import Struct, field, structs

from msauto import sockets
from msauto.api.attempts import Attempt
from msauto.api.forms import report_form
from msauto.api.inputs import Inputs
from msauto.api.loading import Loaded, load
from msauto.api.options import OPTIONS
from msauto.api.run import (
    NOTHING_UNDONE,
    Agree,
    Decision,
    Run,
    RunOptions,
    check_plan,
    plan_only,
    refuse_stale,
)
from msauto.api.saved_plans import write_plan_file
from msauto.aspects import ASPECTS, is_deletion
from msauto.cli.flags import Flags, layout_of
from msauto.cli.interrupts import asking, ignore_interrupts, run_async
from msauto.cli.output import (
    OutputError,
    ReaderGoneError,
    print_message,
    print_result,
    report_missing_ledger,
)
from msauto.cli.watch import STDOUT, RunWatch
from msauto.concurrency import HANG_UP, SystemClock, stop_signals
from msauto.errors import PlanningError, RefusedError
from msauto.exit_codes import CHANGES, ERROR, INCOMPLETE, OK, REFUSED
from msauto.file_access import PLAN
from msauto.ledger.ledger import Ledger
from msauto.model.plan import Plan
from msauto.model.ports import Clock
from msauto.model.result import Result, TargetResult
from msauto.planning.saved_plan import differences, plan_document
from msauto.report.clip_timeline import NO_STILLS, Stills
from msauto.report.json import dump_document
from msauto.report.sanitizing import visible
from msauto.report.texts import SHOWN_REASONS, count_deletions, plural

if TYPE_CHECKING:
    from msauto.applying.apply_context import Cancellation

T = TypeVar("T")
_LONGEST_THOUGHT: Final = 60.0
"""Seconds after which the user's consent may be to something that is no longer so."""


class RunDialog(Struct, frozen=True):
    """One run as the user sees it: how it is planned, consented to and shown.

    ``out``, ``detailed_exitcode`` and ``stills`` are those of a plan that is not applied (``check``).
    """

    flags: Flags
    options: RunOptions
    attempt: Attempt
    watch: RunWatch
    yes: bool = False
    check: bool = False
    out: str | None = None
    detailed_exitcode: bool = False
    stills: int | None = None
    clock: Clock = field(default_factory=SystemClock)

    @property
    def _state_dir(self) -> str | None:
        folder: str | None = click.get_current_context().params["state_dir"]
        return folder

    def load_and_run(self) -> int:
        """Load what is asked for, and run it."""
        folder = self._state_dir
        if folder is not None and not Ledger.exists(self.flags.inputs.ledger):
            report_missing_ledger(folder)
        return self.run(load(self.flags.inputs, keep_going=self.options.keep_going))

    def run(self, loaded: Loaded) -> int:
        """Plan, and apply unless ``--check`` is given; return the exit code. No error that it raises has a secret."""
        with loaded.resolved.secrets.redacted_errors():
            return self._check(loaded) if self.check else self._plan_and_apply(loaded)

    def _check(self, loaded: Loaded) -> int:
        """Plan, show, and write nothing anywhere except ``--out``."""
        outputs, out = self.flags.inputs.outputs, self.out
        if out is not None and out != STDOUT:
            outputs.file(out, PLAN)
        with _nothing_sent():
            plan = run_async(
                self._watched(plan_only(loaded, self.options, self.clock, self.watch.notify))
            )
            stills = self._fetch_stills(plan, loaded)
        self.attempt.plan = plan
        try:
            refuse_stale(plan)
        except RefusedError as error:
            self._show(plan, error=error)
            raise
        self._write(plan, stills)
        if plan.errors:
            self._report_errors(plan)
        if self.detailed_exitcode:
            try:
                with suppress(PlanningError):
                    check_plan(plan, keep_going=self.options.keep_going)
            except RefusedError:
                return REFUSED
            if plan.requests and not plan.errors:
                return CHANGES
        return ERROR if plan.errors else OK

    def _fetch_stills(self, plan: Plan, loaded: Loaded) -> Stills:
        if not self.stills:
            return NO_STILLS
        fetch_stills = sockets.find("functions", "fetch_stills")
        inputs = loaded.inputs
        folder = inputs.state_dir / "stills"
        stills: Stills = run_async(
            fetch_stills(plan, loaded.resolved.specs, folder, most=self.stills, forks=inputs.forks)
        )
        return stills

    def _write(self, plan: Plan, stills: Stills) -> None:
        """Write the plan to ``--out``, and show it unless that is stdout."""
        if self.out == STDOUT:
            print_result(dump_document(plan_document(plan)))
            return
        if self.out is not None:
            write_plan_file(plan, self.flags.inputs.outputs.file(self.out, PLAN))
        self._show(plan, stills=stills)
        if self.out is not None:
            command = ["msauto", "apply", self.out]
            if self.options.keep_going:
                command.append("--keep-going")
            if self._state_dir is not None:
                command += ["--state-dir", self._state_dir]
            shown = visible(shlex.join(command))
            print_message(f"Saved the plan to {visible(self.out)}; apply it with: {shown}")

    def _plan_and_apply(self, loaded: Loaded) -> int:
        """Lock, plan, show, ask, apply; return the exit code."""
        run = Run(loaded, self.options, self.attempt, self.clock, self.watch.notify)
        with _nothing_sent():
            result = run_async(self._watched(run.apply(self._agreeing(), self._stopping)))
        return ERROR if result is None else self._finish(result, loaded)

    def _agreeing(self) -> Agree:
        """Return what shows a plan and asks; it raises ``RefusedError`` if the answer is no.

        The user may think for long. After a minute, it is planned again; if the plan is another one by then, the
        difference is shown and the question is asked again.
        """
        agreed: Plan | None = None

        def agree(plan: Plan) -> Decision:
            nonlocal agreed
            with asking():
                self.watch.erase()
                if agreed is not None and not _report_changed(agreed, plan):
                    return "apply"
                agreed = plan
                shown = self.clock.monotonic()
                if not self._may_apply(plan):
                    return "leave"
                thought = self.clock.monotonic() - shown
                if thought > _LONGEST_THOUGHT:
                    return "plan again"
                return "apply"

        return agree

    def _may_apply(self, plan: Plan) -> bool:
        """Show the plan and ask; raises ``RefusedError`` if the answer is no."""
        try:
            self._show_before(plan)
            ask(plan, yes=self.yes, keep_going=self.options.keep_going)
        except RefusedError as error:
            self._show_instead(plan, error)
            raise
        except PlanningError as error:
            self.attempt.reason = error.message
            self._show_instead(plan)
            self._report_errors(plan)
            return False
        except ReaderGoneError as error:
            self.attempt.reason = f"{error.message}: nothing was sent"
            print_message(f"Error: {error.message}: nothing was sent\n  → {error.remedy}")
            return False
        return True

    @contextmanager
    def _stopping(self) -> Iterator[Cancellation]:
        """Yield what signals stop: the first finishes the requests in flight, the second stops at once."""
        from msauto.applying.apply_context import Cancellation

        stop, loop = Cancellation(), asyncio.get_running_loop()

        def interrupted(number: int) -> None:
            if stop.requested and number == HANG_UP:
                return
            self.watch.erase()
            if not stop.requested:
                print_message(
                    "Stopping after the requests in flight. Press Ctrl-C again to stop at once."
                )
            stop()

        try:
            for number in stop_signals():
                loop.add_signal_handler(number, interrupted, number)
            yield stop
        finally:
            ignore_interrupts(loop)

    async def _watched(self, work: Awaitable[T]) -> T:
        async with self.watch.ticking():
            return await work

    # What is shown -----------------------------------------------------------------------------------------------

    def _show(self, plan: Plan, **view: Any) -> None:
        """Write the plan to stdout in the form of ``--format``; ``view`` as for ``Layout``."""
        layout = layout_of(self.flags, keep_going=self.options.keep_going)
        print_result(report_form(self.flags.format).plan(plan, structs.replace(layout, **view)))

    def _show_before(self, plan: Plan) -> None:
        """Show the plan before the question: other forms than text follow on stdout, with the result.

        The question, or the error in its place, is the one to name what is refused, unless it does not name all.
        """
        keep_going = self.options.keep_going
        has_errors = bool(plan.errors) and not keep_going
        refusals = has_errors or len(plan.refusals) > SHOWN_REASONS
        if self.flags.format == "text":
            self._show(plan, refusals=refusals)
        elif sys.stdin.isatty() and not self.yes:
            layout = layout_of(self.flags, keep_going=keep_going, stream=sys.stderr)
            layout = structs.replace(layout, refusals=refusals)
            text = "".join(report_form("text").plan(plan, layout))
            print_message(text, rendered=True)

    def _show_instead(self, plan: Plan, error: RefusedError | None = None) -> None:
        """Show the plan in place of a result, unless it is shown already."""
        if self.flags.format != "text":
            self._show(plan, error=error)

    def _report_errors(self, plan: Plan) -> None:
        """Report on stderr the errors of a plan that only the document on stdout names."""
        if self.flags.format != "text":
            print_message(
                f"Error: cannot plan {plural(plan.errors, 'target')}; nothing was sent\n"
                "  → the plan shows the errors; --keep-going applies the other targets"
            )

    def _finish(self, result: Result, loaded: Loaded) -> int:
        """Show the result; return the exit code, which does not depend on whether the result can be written."""
        attempt, code = self.attempt, self.attempt.code
        try:
            print_result(report_form(self.flags.format).result(result, layout_of(self.flags)))
        except ReaderGoneError:
            return code
        except OutputError as error:
            print_message(
                f"Error: {error.message}\n  → see what was done: msauto history {result.run}"
            )
            return code or INCOMPLETE
        if code == REFUSED:
            print_message(f"Error: {attempt.reason}\n  → run it again at an allowed time")
        elif attempt.reason == NOTHING_UNDONE:
            print_message(
                f"Error: {attempt.reason}\n  → the warnings of the plan contain the reasons"
            )
        elif any(map(_is_continued, result.targets)):
            context = click.get_current_context()
            command = loaded.resolved.secrets.redact_message(_continuing(context, loaded.inputs))
            print_message(f"  → to continue: {visible(command)}")
        return code


def _report_changed(agreed: Plan, plan: Plan) -> bool:
    """Return whether a plan is another one than was agreed to; report how its targets differ."""
    changed = differences(agreed, plan)
    if not changed and plan.refusals == agreed.refusals:
        return False
    print_message("The plan has changed since it was shown, and nothing was sent:")
    for (server, _, _, name, _), why in changed.items():
        print_message(f"  {visible(f'{server}: {name}: {why}')}")
    return True


def _is_continued(result: TargetResult) -> bool:
    """Whether another run would do what is not done of a target."""
    has_stopped = any(request.outcome == "not sent" for request in result.requests)
    return has_stopped and result.target.error is None


def _continuing(context: click.Context, inputs: Inputs) -> str:
    """Return the command that continues a run, with the flags that decide what is planned, and where the ledger is.

    Consent is asked for again. A saved plan is continued with its playbooks: of what it began, another part is left.
    """
    words = ["msauto", "apply", *inputs.given.playbooks]
    if inputs.given.undo:
        words = ["msauto", "undo", inputs.given.undo]
    if inputs.agreed is not None and not inputs.typed.inventories:
        for inventory in inputs.given.inventories:
            words += ["-i", inventory]
    for option in OPTIONS.values():
        is_typed = context.get_parameter_source(option.keyword) is ParameterSource.COMMANDLINE
        if option.repeated and is_typed:
            value = context.params[option.keyword]
            values = value if isinstance(value, tuple) else (value,)
            for text in values:
                words += [option.names[0], str(text)]
    return shlex.join(words)


@contextmanager
def _nothing_sent() -> Iterator[None]:
    """Add to a ``KeyboardInterrupt`` that nothing was sent; while applying, Ctrl-C raises none."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt("nothing was sent") from None


# Consent -------------------------------------------------------------------------------------------------------------


def ask(plan: Plan, *, yes: bool, keep_going: bool) -> None:
    """Return if the plan may be applied; otherwise raise as :func:`check_plan`.

    Limits come first, also with ``yes``. On a terminal, the user agrees to delete more assets than the limit by
    typing their number (settings, «How limits work»).
    """
    asked = {"delete_assets"} if sys.stdin.isatty() and not yes else set()
    check_plan(plan, keep_going=keep_going, asked=asked)
    if yes or not plan.requests:
        return
    require_terminal()
    deleted = [
        change.aspect for target in plan.targets for change in target.changes if is_deletion(change)
    ]
    if deleted:
        links = sum(ASPECTS[aspect].deletes == "link" for aspect in deleted)
        what = count_deletions(len(deleted) - links, links)
        agreed = prompt(f"\nThis permanently deletes {what}. Type the number to continue: ") == str(
            len(deleted)
        )
        remedy = f"type {len(deleted)}; to delete without a question: --yes --allow-delete {len(deleted)}"
    else:
        agreed = prompt("\nApply this plan? Type 'yes' to continue: ").lower() == "yes"
        remedy = "type yes; to apply without a question: --yes"
    if not agreed:
        raise RefusedError("no consent: nothing was sent", remedy=remedy)


def require_terminal() -> None:
    """Raise :class:`RefusedError` if the user cannot be asked."""
    if not sys.stdin.isatty():
        raise RefusedError(
            "no consent: stdin is not a terminal", remedy="use --yes, or run it on a terminal"
        )


def prompt(question: str) -> str:
    """Ask on stderr, because stdout carries the result; the end of the input is an empty answer."""
    sys.stderr.write(question)
    sys.stderr.flush()
    line = sys.stdin.readline()
    if not line.endswith("\n"):
        sys.stderr.write("\n")
    return line.strip()
