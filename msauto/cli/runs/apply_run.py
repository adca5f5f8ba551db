"""What ``apply`` and ``undo`` share: one run from the locks to the exit code."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, TypeVar

import click
from click.core import ParameterSource
from msgspec import structs

from msauto.api.saved_plans import is_plan_file, kept_options, write_plan_file
from msauto.api.stages import apply_plan, recover_runs
from msauto.cli import output
from msauto.cli.exit_codes import CHANGES, ERROR, INCOMPLETE, INTERRUPTED, OK, REFUSED
from msauto.cli.flags import Flags
from msauto.cli.interrupts import SIGNALS, ignore_interrupts, run_async
from msauto.cli.report_forms import FORMS
from msauto.cli.runs.attempt_record import origin_of
from msauto.cli.runs.consent import ask
from msauto.cli.runs.options import AllowedTimes, RunOptions
from msauto.cli.runs.plan_output import layout_of, report_errors, show_plan, with_state_refusal
from msauto.cli.runs.plan_sources import PlanSource
from msauto.cli.runs.run_watch import STDOUT
from msauto.concurrency import SystemClock
from msauto.errors import MsautoError, RefusedError
from msauto.ledger import Ledger
from msauto.ledger.history import OPTIONS
from msauto.model.codec import dump, to_json
from msauto.model.events import PlanningEnded, PlanningStarted
from msauto.model.plan import Plan
from msauto.model.ports import Clock
from msauto.model.result import Result
from msauto.planning.saved_plan import count_stale, differences, plan_document
from msauto.playbook.input_files import base_of
from msauto.report.html.stills import NO_STILLS, Stills
from msauto.report.json import dump_document
from msauto.report.sanitizing import visible
from msauto.report.sentences import plural, refusal_error, refusal_reason
from msauto.secrets.redactor import redact_plan

T = TypeVar("T")
_LONGEST_THOUGHT: Final = 60.0
"""Seconds after which the user's consent may be to something that is no longer so."""


@dataclass(frozen=True, slots=True)
class TimesPassed:
    """Returns why no more targets may begin: a freeze, or the window; ``closed`` collects it."""

    times: AllowedTimes
    closed: list[str]

    def __call__(self, now: datetime) -> str | None:
        """Return the reason, at this time."""
        refusal = next(self.times.refusals(now), None)
        if refusal is None:
            return None
        self.closed.append(refusal_reason(refusal))
        return self.closed[-1]


@dataclass(frozen=True, slots=True)
class ApplyRun:
    """One run of ``apply`` or ``undo``; it holds its locks from the first read to the last verification.

    ``playbooks`` is what the history shows. ``closed`` collects why targets did not begin: a freeze, the window.
    ``end_signals`` removes the signal handlers of the event loop once nothing more is sent.
    """

    flags: Flags
    playbooks: tuple[str, ...]
    source: PlanSource
    options: RunOptions
    clock: Clock = field(default_factory=SystemClock)
    closed: list[str] = field(default_factory=list)
    end_signals: Callable[[asyncio.AbstractEventLoop], None] = ignore_interrupts

    def run(self) -> int:
        """Plan, and apply unless ``--check`` is given; return the exit code. No error that it raises has a secret."""
        with self.source.secrets.redacted_errors():
            return self._check() if self.options.check else self._plan_and_apply()

    def _check(self) -> int:
        """Plan, show, and write nothing anywhere except ``--out``."""
        options = self.options
        with Ledger.open(self.flags.ledger, readonly=True) as ledger, _nothing_sent():
            plan = with_state_refusal(run_async(self._plan(ledger)), self.flags, ledger)
            stills = run_async(self._stills(plan)) if options.stills else NO_STILLS
        options.attempt.plan = plan
        try:
            _refuse_stale(plan)
        except RefusedError as error:
            show_plan(plan, self.flags, keep_going=options.keep_going, error=error)
            raise
        if options.out == STDOUT:
            output.print_result(dump_document(plan_document(plan)))
        else:
            if options.out is not None:
                write_plan_file(plan, options.out)
            show_plan(plan, self.flags, keep_going=options.keep_going, stills=stills)
        if plan.errors:
            return report_errors(plan, self.flags)
        return CHANGES if options.detailed_exitcode and plan.requests else OK

    async def _stills(self, plan: Plan) -> Stills:
        from msauto.cli.runs.plan_stills import fetch_stills

        folder = self.flags.state_dir / "stills"
        return await fetch_stills(plan, self.source.specs, folder, most=self.options.stills, forks=self.flags.forks)

    def _plan_and_apply(self) -> int:
        """Lock, plan, show, ask, apply; return the exit code."""
        self._require_state()
        with Ledger.open(self.flags.ledger) as ledger, asyncio.Runner() as runner:
            if self.flags.on is not None:
                ledger.admit_workers()  # a local ledger is refused before anything is read
            locks = ledger.hold(self.source.scopes, self.clock, lock_timeout=self.options.lock_timeout)
            with _nothing_sent():
                run_async(locks.__aenter__(), runner)
            try:
                # No event loop runs between these stages, so that Ctrl-C works as usual while the user is asked.
                with _nothing_sent():
                    self._recover(ledger, runner)
                    plan = self._agreed_plan(ledger, runner)
                    if plan is None:
                        return ERROR
                result = runner.run(self._apply(plan, ledger))
            finally:
                runner.run(_await(locks.__aexit__(None, None, None)))
        return self._finish(plan, result)

    def _agreed_plan(self, ledger: Ledger, runner: asyncio.Runner) -> Plan | None:
        """Return the plan that may be applied; ``None`` after an error. Raises ``RefusedError``.

        The user may think for long. After a minute, it is planned again; if the plan is another one by then, the
        difference is shown and the question is asked again.
        """
        agreed: Plan | None = None
        while True:
            plan, attempt = run_async(self._plan(ledger), runner), self.options.attempt
            attempt.plan, attempt.summary = plan, to_json(plan.summary)
            if agreed is not None:
                changed = differences(agreed, plan)
                if not changed and plan.refusals == agreed.refusals:
                    return plan
                output.print_message("The plan has changed since it was shown, and nothing was sent:")
                for (server, _, _, name, _), why in changed.items():
                    output.print_message(f"  {visible(f'{server}: {name}: {why}')}")
            shown = self.clock.monotonic()
            if not self._may_apply(plan):
                return None
            if self.clock.monotonic() - shown <= _LONGEST_THOUGHT:
                return plan
            agreed = plan

    def _recover(self, ledger: Ledger, runner: asyncio.Runner) -> None:
        """Settle the requests that runs left in doubt when they died, before anything is planned."""
        source = self.source
        lines = run_async(
            recover_runs(
                ledger,
                source.specs,
                source.scopes,
                clock=self.clock,
                forks=self.flags.forks,
                secrets=source.secrets,
                on=self.flags.on,
            ),
            runner,
        )
        for line in lines:
            output.print_message(visible(line) if line.startswith(" ") else f"Warning: {visible(line)}")

    async def _plan(self, ledger: Ledger) -> Plan:
        options, watch, source = self.options, self.options.watch, self.source
        watch.notify(PlanningStarted(tuple(spec.name for spec in source.specs)))
        async with watch.ticking():
            plan = await source.plan(ledger.plan_memory(), self.clock, self.flags.forks, options.limits, watch)
        kept = kept_options(source.options, plan.secrets, base_of(source.options.playbooks))
        plan = structs.replace(plan, settings=self.flags.settings.used, options=kept)
        plan = options.times.check(plan, self.clock.now())
        watch.notify(PlanningEnded(plan.summary, plan.refusals))
        return plan

    # May the plan be applied? ------------------------------------------------------------------------------------

    def _require_state(self) -> None:
        """Refuse an empty ledger if the settings require one: the user must decide whether this is the first run.

        The ledger is opened to read only: an unmounted folder must not get one by this check.
        """
        if not self.flags.settings.require_state:
            return
        with Ledger.open(self.flags.ledger, readonly=True) as ledger:
            if not ledger.empty:
                return
            with _nothing_sent():
                plan = with_state_refusal(run_async(self._plan(ledger)), self.flags, ledger)
        error = refusal_error([each for each in plan.refusals if each.code == "state"])
        self._show_before(plan)
        self._show_instead(plan, error)
        raise error

    def _may_apply(self, plan: Plan) -> bool:
        """Show the plan and ask; raises ``RefusedError`` if the answer is no."""
        try:
            self._show_before(plan)
            if plan.errors and not self.options.keep_going:
                _refuse_stale(plan)
                self._report_planning_errors(plan)
                return False
            ask(plan, yes=self.options.yes)
        except RefusedError as error:
            self._show_instead(plan, error)
            raise
        except output.ReaderGoneError as error:
            self.options.attempt.reason = f"{error.message}: nothing was sent"
            output.print_message(f"Error: {error.message}: nothing was sent\n  → {error.remedy}")
            return False
        return True

    def _report_planning_errors(self, plan: Plan) -> None:
        first = next(target for target in redact_plan(plan).targets if target.error is not None)
        message = f"{first.name}: {str(first.error).partition(chr(10))[0]}"
        self.options.attempt.reason = f"cannot plan {plural(plan.errors, 'target')}: {message}"
        self._show_instead(plan)
        report_errors(plan, self.flags)

    # Apply -------------------------------------------------------------------------------------------------------

    async def _apply(self, plan: Plan, ledger: Ledger) -> Result:
        """Apply the plan; the first Ctrl-C finishes the requests in flight, the second stops at once."""
        from msauto.applying.executor import Cancellation

        stop, watch = Cancellation(), self.options.watch
        loop = asyncio.get_running_loop()
        notes = {**origin_of(self.playbooks, self.flags.settings), **self.options.attempt.notes}
        notes[OPTIONS] = dump(kept_options(self.source.options, plan.secrets, None))
        if self.options.override_freeze:
            notes["override_freeze"] = plan.secrets.redact_message(self.options.override_freeze)

        def interrupted() -> None:
            watch.erase()
            if not stop.requested:
                output.print_message("Stopping after the requests in flight. Press Ctrl-C again to stop at once.")
            stop()

        try:
            for number in SIGNALS:
                loop.add_signal_handler(number, interrupted)
            async with watch.ticking():
                result = await apply_plan(
                    structs.replace(plan, targets=tuple(each for each in plan.targets if each.error is None)),
                    self.source.specs,
                    ledger=ledger,
                    clock=self.clock,
                    observer=watch,
                    forks=self.flags.forks,
                    playbooks=self.playbooks,
                    cancellation=stop,
                    frozen=TimesPassed(self.options.times, self.closed),
                    notes=notes,
                    on=self.flags.on,
                )
            self._prune(ledger)
            return result
        finally:
            self.end_signals(loop)

    def _prune(self, ledger: Ledger) -> None:
        """Forget old runs, as the settings require; a failure does not affect this run."""
        settings = self.flags.settings
        try:
            ledger.prune(keep_runs=settings.keep_runs, keep_days=settings.keep_days)
        except MsautoError as error:
            output.print_message(f"Warning: cannot remove old runs from the ledger: {error.message}")

    # What is shown -----------------------------------------------------------------------------------------------

    def _show_before(self, plan: Plan) -> None:
        """Show the plan before the question: other forms than text follow on stdout, with the result."""
        if self.flags.format == "text":
            show_plan(plan, self.flags, keep_going=self.options.keep_going)
        elif sys.stdin.isatty() and not self.options.yes:
            layout = layout_of(self.flags, keep_going=self.options.keep_going, stream=sys.stderr)
            output.print_message("".join(FORMS["text"].plan(plan, layout)), rendered=True)

    def _show_instead(self, plan: Plan, error: RefusedError | None = None) -> None:
        """Show the plan in place of a result, unless it is shown already."""
        if self.flags.format != "text":
            show_plan(plan, self.flags, keep_going=self.options.keep_going, error=error)

    def _finish(self, plan: Plan, result: Result) -> int:
        """Show the result; return the exit code, which does not depend on whether the result can be written."""
        result = result.with_left_out(redact_plan(plan))
        self.options.attempt.run, self.options.attempt.result = result.run, result
        began = any(each.outcome != "not attempted" for each in result.targets)
        refused = bool(self.closed) and not began
        code = INTERRUPTED if result.interrupted else OK if result.ok else REFUSED if refused else INCOMPLETE
        try:
            output.print_result(FORMS[self.flags.format].result(result, layout_of(self.flags)))
        except output.ReaderGoneError:
            return code
        except output.OutputError as error:
            output.print_message(f"Error: {error.message}\n  → see what was done: msauto history {result.run}")
            return code or INCOMPLETE
        left = [each for each in result.targets if each.outcome in {"interrupted", "not attempted"}]
        context = click.get_current_context(silent=True)  # none in a batch, which prints for all of its jobs
        if context is not None and code != REFUSED and any(each.target.error is None for each in left):
            command = plan.secrets.redact_message(_continuing(context, self.playbooks, result.run))
            output.print_message(f"  → to continue: {visible(command)}")
        if code == REFUSED:
            self.options.attempt.reason = f"{self.closed[-1]}: nothing was sent"
            output.print_message(f"Error: {self.closed[-1]}: nothing was sent\n  → run it again at an allowed time")
        return code


_KEPT: Final = ("inventory", "server", "extra_vars", "limit", "tags", "skip_tags", "state_dir", "config", "on")
"""The flags that decide what is planned, and where the ledger is. Consent is asked for again."""


def _continuing(context: click.Context, playbooks: Sequence[str], run: str) -> str:
    """Return the command that continues a run, with the flags that the user gave."""
    verb, _, name = playbooks[0].partition(" ")
    if verb == "undo" and name:
        words = ["msauto", "undo", name]
    elif (verb == "resume" and name) or is_plan_file(playbooks[0]):
        words = ["msauto", "apply", "--resume", run]
    else:
        words = ["msauto", "apply", *playbooks, "--resume", "last"]
    for option in context.command.params:
        given = context.get_parameter_source(str(option.name)) is ParameterSource.COMMANDLINE
        if given and option.name in _KEPT:
            value = context.params[option.name]
            for each in value if isinstance(value, tuple) else (value,):
                words += [option.opts[0], str(each)]
    return shlex.join(words)


def _refuse_stale(plan: Plan) -> None:
    stale = count_stale(plan)
    if stale:
        raise RefusedError(
            f"the plan is stale: {plural(stale, 'target')} changed since it was made; nothing was sent",
            remedy="make the plan again, or apply the other targets with --keep-going",
        )


@contextmanager
def _nothing_sent() -> Iterator[None]:
    """Add to a ``KeyboardInterrupt`` that nothing was sent; while applying, Ctrl-C raises none."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt("nothing was sent") from None


async def _await(awaitable: Awaitable[T]) -> T:
    return await awaitable
