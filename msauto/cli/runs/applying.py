"""What ``apply`` and ``undo`` share: one run from the locks to the exit code."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar

from msgspec import structs

from msauto.aio import recover_runs
from msauto.cli.flags import Flags
from msauto.cli.interruptible import run_async
from msauto.cli.output import OutputError, ReaderGoneError, colour_on, give, say
from msauto.cli.runs.allowed_times import with_state, with_times
from msauto.cli.runs.attempt import who
from msauto.cli.runs.consent import ask
from msauto.cli.runs.past_runs import SETTINGS
from msauto.cli.runs.plan_sources import PlannedRun, PlanSource
from msauto.cli.runs.planning import give_plan, plan_text, show_plan, tell_errors
from msauto.cli.runs.run_options import RunOptions
from msauto.cli.runs.running import run_plan
from msauto.errors import RefusedError
from msauto.ledger import Ledger
from msauto.model.codec import to_json
from msauto.model.plan import Plan
from msauto.model.ports import Clock
from msauto.model.result import Result
from msauto.planning.saved_plans.plan_file import plan_to_json
from msauto.report import html, markdown, text
from msauto.report.json import dump, result_json
from msauto.report.sanitizing import visible
from msauto.report.sentences import plural, reason_of, refusals_told
from msauto.secrets.redactor import redact_plan

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ApplyRun:
    """One run of ``apply`` or ``undo``, with its locks held from the first read to the last proof."""

    flags: Flags
    paths: tuple[str, ...]
    source: PlanSource
    clock: Clock
    asked: RunOptions
    closed: list[str] = field(default_factory=list)
    """Why targets were not begun: that it was not the time."""

    def code(self) -> int:
        """Do what was asked for; return the exit code."""
        return self.check() if self.asked.check else self.whole()

    def check(self) -> int:
        """Plan, show, and write nothing anywhere."""
        with Ledger.open(self.flags.state_dir, readonly=True) as ledger, _nothing_sent():
            planned = run_async(self._plan(ledger))
            planned = replace(planned, plan=with_state(planned.plan, self.flags, ledger))
        asked = self.asked
        if planned.stale:
            try:
                self._refuse_stale(planned)
            except RefusedError as error:
                show_plan(planned.plan, self.flags, keep_going=asked.keep_going, error=error)
                raise
        return give_plan(
            planned.plan,
            self.flags,
            out=asked.out,
            detailed_exitcode=asked.detailed_exitcode,
            keep_going=asked.keep_going,
        )

    def whole(self) -> int:
        """Lock, plan, show, ask, apply; return the exit code."""
        self._require_state()
        with Ledger.open(self.flags.state_dir) as ledger, asyncio.Runner() as runner:
            locks = ledger.hold(self.source.scopes, self.clock, lock_timeout=self.asked.lock_timeout)
            with _nothing_sent():
                run_async(locks.__aenter__(), runner)
            try:
                # Between the stages no event loop runs: nothing stands between a person and his Ctrl-C.
                with _nothing_sent():
                    for line in run_async(self._recover(ledger), runner):
                        say(f"Warning: {visible(line)}" if not line.startswith(" ") else visible(line))
                    planned = run_async(self._plan(ledger), runner)
                    self.asked.attempt.summary = to_json(planned.plan.summary)
                    if not self._may_go_on(planned):
                        return 1
                result = runner.run(self._apply(planned.plan, ledger))
            finally:
                runner.run(_enter(locks.__aexit__(None, None, None)))
        return self._end(planned.plan, result)

    async def _recover(self, ledger: Ledger) -> tuple[str, ...]:
        """Settle what runs that died left under way, before anything is planned."""
        source = self.source
        return await recover_runs(
            ledger,
            source.specs,
            source.scopes,
            clock=self.clock,
            forks=self.flags.forks,
            secrets=source.secrets,
        )

    async def _plan(self, ledger: Ledger) -> PlannedRun:
        planned = await self.source.plan(ledger.memory, self.clock, self.flags.forks, self.asked.limits)
        return replace(planned, plan=with_times(planned.plan, self.asked.times, self.clock.now()))

    async def _apply(self, plan: Plan, ledger: Ledger) -> Result:
        sound = structs.replace(plan, targets=tuple(target for target in plan.targets if target.error is None))
        notes = {SETTINGS: str(self.flags.settings_file), **who()}
        notes |= {"override_freeze": self.asked.override_freeze} if self.asked.override_freeze else {}
        return await run_plan(
            sound, self.source.specs, ledger, self.clock, self.flags, self.paths, frozen=self._frozen, notes=notes
        )

    # May it be? --------------------------------------------------------------------------------------------------

    def _require_state(self) -> None:
        """Refuse an empty ledger where the settings require one: a person must decide whether it is the first run.

        It is only read, so that a folder that nobody mounted does not get a ledger by being looked at.
        """
        if not self.flags.settings.require_state:
            return
        with Ledger.open(self.flags.state_dir, readonly=True) as ledger:
            if not ledger.empty:
                return
            with _nothing_sent():
                plan = with_state(run_async(self._plan(ledger)).plan, self.flags, ledger)
        reason, remedy = refusals_told([each for each in plan.refusals if each.code == "state"])
        refused = RefusedError(reason, remedy=remedy)
        self._show_before(plan)
        self._give_refused(plan, refused)
        raise refused

    def _may_go_on(self, planned: PlannedRun) -> bool:
        """Show the plan and ask; raises ``RefusedError`` where the answer is no."""
        try:
            self._show_before(planned.plan)
            return self._is_agreed(planned)
        except RefusedError as error:
            self._give_refused(planned.plan, error)
            raise
        except ReaderGoneError as error:
            self.asked.attempt.reason = f"{error.message}: nothing was sent"
            say(f"Error: {error.message}: nothing was sent\n  → {error.remedy}")
            return False

    def _is_agreed(self, planned: PlannedRun) -> bool:
        if planned.plan.errors and not self.asked.keep_going:
            self._refuse_stale(planned)
            self.asked.attempt.reason = f"{plural(planned.plan.errors, 'target')} cannot be planned: {_first(planned)}"
            self._give_plan_alone(planned.plan)
            tell_errors(planned.plan, self.flags)
            return False
        ask(planned.plan, yes=self.asked.yes)
        return True

    def _refuse_stale(self, planned: PlannedRun) -> None:
        if planned.stale:
            raise RefusedError(
                f"the plan is stale: {plural(planned.stale, 'target')} changed since it was made; nothing was sent",
                remedy="make the plan again; or --keep-going, which applies the others",
            )

    def _frozen(self) -> str | None:
        """Say why no new target is to be begun now: a freeze holds that nobody overrides, or the window is closed."""
        closed = next(self.asked.times.refusals(self.clock.now()), None)
        if closed is None:
            return None
        self.closed.append(reason_of(closed))
        return self.closed[-1]

    # What is shown -----------------------------------------------------------------------------------------------

    def _show_before(self, plan: Plan) -> None:
        if self.flags.format == "text":
            show_plan(plan, self.flags, keep_going=self.asked.keep_going)
        elif sys.stdin.isatty() and not self.asked.yes:
            say(plan_text(plan, self.flags, sys.stderr, keep_going=self.asked.keep_going))

    def _give_plan_alone(self, plan: Plan) -> None:
        if self.flags.format != "text":
            show_plan(plan, self.flags)

    def _give_refused(self, plan: Plan, error: RefusedError) -> None:
        if self.flags.format != "text":
            show_plan(plan, self.flags, error=error)

    def _end(self, plan: Plan, result: Result) -> int:
        """Show what came of it; return the exit code, which is true whether or not anybody reads the rest."""
        plan = redact_plan(plan)
        result = result.with_left_out(plan)
        self.asked.attempt.run = result.run
        closed = self.closed[-1] if self.closed and not _begun(result) else None
        code = 130 if result.interrupted else 0 if result.ok else REFUSED if closed else 3
        try:
            self._show_after(plan, result)
        except ReaderGoneError:
            return code
        except OutputError as error:
            say(f"Error: {error.message}\n  → what was done is recorded: msauto history {result.run}")
            return code or 3
        if code == REFUSED:
            self.asked.attempt.reason = f"{closed}: nothing was sent"
            say(f"Error: {closed}: nothing was sent\n  → run it again when it may")
        return code

    def _show_after(self, plan: Plan, result: Result) -> None:
        if self.flags.format == "json":
            give(dump(result_json(plan_to_json(plan), result)))
        elif self.flags.format == "markdown":
            give(markdown.render_result(result))
        elif self.flags.format == "html":
            give(html.render_result(result))
        elif result.targets or plan.left_out:
            colour = colour_on(sys.stdout, no_color=self.flags.no_color)
            give(text.render_result(result, colour=colour, verbosity=self.flags.verbosity))


REFUSED = 4


def _first(planned: PlannedRun) -> str:
    """Return what is wrong with the first target that cannot be planned, in one line; it holds no secret."""
    shown = redact_plan(planned.plan)
    found = next(target for target in shown.targets if target.error is not None)
    return f"{found.name}: {str(found.error).partition(chr(10))[0]}"


def _begun(result: Result) -> bool:
    return any(each.outcome != "not attempted" for each in result.targets)


@contextmanager
def _nothing_sent() -> Iterator[None]:
    """Say so where Ctrl-C comes before anything is sent; afterwards it is no exception any more."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt("nothing was sent") from None


async def _enter(awaitable: Awaitable[T]) -> T:
    return await awaitable
