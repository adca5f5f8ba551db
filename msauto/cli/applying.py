"""What ``apply`` and ``undo`` share: their flags, and one run from the locks to the exit code."""

from __future__ import annotations

import asyncio
import functools
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from typing import Any, TypeVar

import click

from msauto.aio import recover_runs
from msauto.cli.consent import ask
from msauto.cli.flags import Flags
from msauto.cli.interruptible import run_async
from msauto.cli.output import OutputError, ReaderGoneError, colour_on, give, say
from msauto.cli.planning import plan_text, show_plan, tell_errors
from msauto.cli.running import run_plan
from msauto.cli.sources import Planned, Source
from msauto.errors import RefusedError
from msauto.ledger import Ledger
from msauto.model.limits import Limits
from msauto.model.plan import Plan
from msauto.model.ports import Clock
from msauto.model.result import Result
from msauto.planning.planfile import plan_to_json
from msauto.playbook.freezes import freeze_at
from msauto.report import html, markdown, text
from msauto.report.json import dump, result_json
from msauto.report.sentences import plural
from msauto.report.visible import visible

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Asked:
    """How the run is to go: consent, limits with what the flags allow, and until when targets may be begun."""

    limits: Limits
    yes: bool = False
    check: bool = False
    keep_going: bool = False
    override_freeze: str | None = None
    lock_timeout: float = 0.0
    not_after: datetime | None = None


def _moment(context: click.Context, option: click.Parameter, text: str | None) -> datetime | None:
    """Read a time of day (the next one, here), or an ISO 8601 date and time; without a zone it is this machine's."""
    if text is None:
        return None
    try:
        if len(text) <= len("05:30"):
            return next_time(time.fromisoformat(text), datetime.now().astimezone())
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):  # the latter: a date that another zone's calendar does not reach
        message = f"{text!r} is no time: write 05:30, or 2026-11-21T05:30"
        raise click.BadParameter(message, ctx=context, param=option) from None


def next_time(clock: time, now: datetime) -> datetime:
    """Return when it is this time of day next, here; each day's own distance from UTC counts."""
    today = datetime.combine(now.date(), clock).astimezone()
    return today if today > now else datetime.combine(now.date() + timedelta(days=1), clock).astimezone()


_OPTIONS: tuple[Callable[[Callable[..., Any]], Callable[..., Any]], ...] = (
    click.option("-y", "--yes", is_flag=True, help="Do not ask."),
    click.option("--check", is_flag=True, help="Plan only: the same as msauto plan."),
    click.option("--keep-going", is_flag=True, help="Leave out targets that cannot be planned, and end with 3."),
    click.option("--allow-delete", type=click.IntRange(0), metavar="N", help="Assets that the run may delete."),
    click.option("--allow-remove", type=click.IntRange(0), metavar="N", help="List items that `exactly` may remove."),
    click.option("--allow-requests", type=click.IntRange(0), metavar="N", help="Requests that the run may send."),
    click.option(
        "--override-freeze", metavar="REASON", help="Go on in a freeze of msauto.toml; the reason is recorded."
    ),
    click.option(
        "--lock-timeout", type=click.FloatRange(0), default=0.0, metavar="SECONDS", help="Wait for another run."
    ),
    click.option(
        "--not-after", callback=_moment, metavar="TIME", help="Begin no target after this (05:30, or a date)."
    ),
)


def run_flags(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the flags of a run, handed to it as one ``asked`` value; goes below ``shared_flags``' own."""

    @functools.wraps(function)
    def command(
        *,
        flags: Flags,
        yes: bool,
        check: bool,
        keep_going: bool,
        allow_delete: int | None,
        allow_remove: int | None,
        allow_requests: int | None,
        override_freeze: str | None,
        lock_timeout: float,
        not_after: datetime | None,
        **own: Any,
    ) -> Any:
        if override_freeze is not None and not override_freeze.strip():
            raise click.BadParameter("say why", param_hint="--override-freeze")
        limits = _allowed(flags.settings.limits, allow_delete, allow_remove, allow_requests)
        asked = Asked(limits, yes, check, keep_going, override_freeze, lock_timeout, not_after)
        return function(flags=flags, asked=asked, **own)

    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def _allowed(limits: Limits, delete: int | None, remove: int | None, requests: int | None) -> Limits:
    """Return the limits with what the flags allow for this run."""
    if delete is not None:
        limits = replace(limits, delete_assets=max(delete, limits.delete_assets))
    if remove is not None:
        limits = replace(limits, allow_remove=remove)
    if requests is not None:
        limits = replace(limits, requests=requests)
    return limits


@dataclass(frozen=True, slots=True)
class Run:
    """One run of ``apply`` or ``undo``, with its locks held from the first read to the last proof."""

    flags: Flags
    paths: tuple[str, ...]
    source: Source
    clock: Clock
    asked: Asked

    def code(self) -> int:
        """Do what was asked for; return the exit code."""
        return self.check() if self.asked.check else self.whole()

    def check(self) -> int:
        """Plan, show, and write nothing anywhere."""
        with Ledger.open(self.flags.state_dir, readonly=True) as ledger, _nothing_sent():
            planned = run_async(self._plan(ledger))
        show_plan(planned.plan, self.flags)
        self._refuse_stale(planned)
        return tell_errors(planned.plan, self.flags)

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
                    if not self._may_go_on(planned):
                        return 1
                result = runner.run(self._apply(planned.plan, ledger))
            finally:
                runner.run(_enter(locks.__aexit__(None, None, None)))
        return self._end(planned.plan, result)

    async def _recover(self, ledger: Ledger) -> tuple[str, ...]:
        """Settle what runs that died left under way, before anything is planned."""
        source = self.source
        return await recover_runs(ledger, source.specs, source.scopes, clock=self.clock, forks=self.flags.forks)

    async def _plan(self, ledger: Ledger) -> Planned:
        return await self.source.plan(ledger.memory, self.clock, self.flags.forks, self.asked.limits)

    async def _apply(self, plan: Plan, ledger: Ledger) -> Result:
        sound = replace(plan, targets=tuple(target for target in plan.targets if target.error is None))
        notes = {"override_freeze": self.asked.override_freeze} if self.asked.override_freeze else {}
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
                self._show_whole(run_async(self._plan(ledger)).plan)
        raise RefusedError(
            f"the ledger in {self.flags.state_dir} is empty, and {self.flags.settings.file} requires one",
            remedy="mount the folder that holds it; for the very first run, set `require = false` under [state]",
        )

    def _may_go_on(self, planned: Planned) -> bool:
        """Show the plan and ask; raises ``RefusedError`` where the answer is no."""
        try:
            self._show_before(planned.plan)
            return self._is_agreed(planned)
        except RefusedError:
            self._give_plan_alone(planned.plan)
            raise
        except ReaderGoneError as error:
            say(f"Error: {error.message}: nothing was sent\n  → {error.remedy}")
            return False

    def _is_agreed(self, planned: Planned) -> bool:
        if planned.plan.errors and not self.asked.keep_going:
            self._refuse_stale(planned)
            self._give_plan_alone(planned.plan)
            tell_errors(planned.plan, self.flags)
            return False
        frozen = self._frozen() if planned.plan.requests else None
        if frozen:
            remedy = (
                "wait until then, or --override-freeze REASON" if self._is_in_time() else "give a later --not-after"
            )
            raise RefusedError(frozen, remedy=remedy)
        ask(planned.plan, yes=self.asked.yes)
        return True

    def _refuse_stale(self, planned: Planned) -> None:
        if planned.stale:
            raise RefusedError(
                f"the plan is stale: {plural(planned.stale, 'target')} changed since it was made; nothing was sent",
                remedy="make the plan again; or --keep-going, which applies the others",
            )

    def _frozen(self) -> str | None:
        """Say why no new target is to be begun now: it is too late, or a freeze holds that nobody overrides."""
        late = self.asked.not_after
        if late is not None and self.clock.now() >= late:
            return f"it is past {late:%Y-%m-%d %H:%M %Z}, after which nothing is to be begun (--not-after)"
        if self.asked.override_freeze:
            return None
        frozen = freeze_at(self.flags.settings.freezes, self.clock.now())
        return str(frozen) if frozen else None

    def _is_in_time(self) -> bool:
        late = self.asked.not_after
        return late is None or self.clock.now() < late

    # What is shown -----------------------------------------------------------------------------------------------

    def _show_whole(self, plan: Plan) -> None:
        self._show_before(plan)
        self._give_plan_alone(plan)

    def _show_before(self, plan: Plan) -> None:
        if self.flags.format == "text":
            show_plan(plan, self.flags, keep_going=self.asked.keep_going)
        elif sys.stdin.isatty() and not self.asked.yes:
            say(plan_text(plan, self.flags, sys.stderr, keep_going=self.asked.keep_going))

    def _give_plan_alone(self, plan: Plan) -> None:
        if self.flags.format != "text":
            show_plan(plan, self.flags)

    def _end(self, plan: Plan, result: Result) -> int:
        """Show what came of it; return the exit code, which is true whether or not anybody reads the rest."""
        code = 130 if result.interrupted else 0 if result.ok and not plan.errors else 3
        try:
            self._show_after(plan, result)
        except ReaderGoneError:
            return code
        except OutputError as error:
            say(f"Error: {error.message}\n  → what was done is recorded: msauto history {result.run}")
            return code or 3
        return code

    def _show_after(self, plan: Plan, result: Result) -> None:
        if self.flags.format == "json":
            whole = plan_to_json(plan)
            del whole["checksum"]  # a result is no plan: it cannot be applied
            give(dump(result_json(whole, result)))
        elif self.flags.format == "markdown":
            give(markdown.render_result(result))
        elif self.flags.format == "html":
            give(html.render_result(result))
        elif result.targets:
            colour = colour_on(sys.stdout, no_color=self.flags.no_color)
            give(text.render_result(result, colour=colour, verbosity=self.flags.verbosity))


@contextmanager
def _nothing_sent() -> Iterator[None]:
    """Say so where Ctrl-C comes before anything is sent; afterwards it is no exception any more."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt("nothing was sent") from None


async def _enter(awaitable: Awaitable[T]) -> T:
    return await awaitable
