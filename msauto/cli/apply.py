"""``msauto apply``: shows the plan, asks, applies, reads again and proves it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable
from dataclasses import dataclass, field, replace
from typing import TypeVar

import click

from msauto.aio import SystemClock, make_plan, scopes_of, specs_of
from msauto.cli.consent import ask
from msauto.cli.flags import Flags, shared_flags
from msauto.cli.output import colour_on, give, say
from msauto.cli.planning import plan_now, plan_text, show_plan
from msauto.cli.running import run_plan
from msauto.errors import RefusedError
from msauto.ledger import Ledger
from msauto.model.limits import Limits
from msauto.model.plan import Plan
from msauto.model.ports import Clock
from msauto.model.result import Result
from msauto.model.wanted import Resolved
from msauto.planning.planfile import plan_to_json
from msauto.playbook.resolve import resolve
from msauto.report import html, markdown, text
from msauto.report.json import dump, result_json

T = TypeVar("T")


@click.command("apply")
@click.argument("playbooks", nargs=-1, required=True, type=click.Path(), metavar="PLAYBOOK...")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--check", is_flag=True, help="Plan only: the same as msauto plan.")
@click.option("--keep-going", is_flag=True, help="Leave out targets that cannot be planned, and end with 3.")
@click.option("--allow-delete", type=click.IntRange(0), metavar="N", help="Assets that the run may delete.")
@click.option("--allow-remove", type=click.IntRange(0), metavar="N", help="List items that `exactly` may remove.")
@click.option("--allow-requests", type=click.IntRange(0), metavar="N", help="Requests that the run may send.")
@click.option("--lock-timeout", type=click.FloatRange(0), default=0.0, metavar="SECONDS", help="Wait for another run.")
@shared_flags
def command(
    *,
    flags: Flags,
    playbooks: tuple[str, ...],
    yes: bool,
    check: bool,
    keep_going: bool,
    allow_delete: int | None,
    allow_remove: int | None,
    allow_requests: int | None,
    lock_timeout: float,
) -> int:
    """Make the assets what the playbooks say: show the plan, ask, send the fewest requests, prove the outcome."""
    limits = _allowed(flags.settings.limits, allow_delete, allow_remove, allow_requests)
    if check:
        plan = plan_now(flags, limits)
        show_plan(plan, flags)
        return 1 if plan.errors else 0
    return _Run(flags, playbooks, limits, yes=yes, keep_going=keep_going, lock_timeout=lock_timeout).whole()


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
class _Run:
    """One run of ``apply``, with its locks held from the first read to the last proof."""

    flags: Flags
    playbooks: tuple[str, ...]
    limits: Limits
    yes: bool = field(kw_only=True)
    keep_going: bool = field(kw_only=True)
    lock_timeout: float = field(kw_only=True)

    def whole(self) -> int:
        """Resolve, lock, plan, show, ask, apply; return the exit code."""
        resolved = resolve(self.flags.options)
        clock = SystemClock()
        with Ledger.open(self.flags.state_dir) as ledger, asyncio.Runner() as runner:
            locks = ledger.hold(scopes_of(resolved), clock, lock_timeout=self.lock_timeout)
            runner.run(_enter(locks.__aenter__()))
            try:
                # Between the stages no event loop runs: nothing stands between a person and his Ctrl-C.
                plan = runner.run(self._plan(resolved, ledger, clock))
                if not self._may_go_on(plan):
                    return 1
                result = runner.run(self._apply(plan, resolved, ledger, clock))
            finally:
                runner.run(_enter(locks.__aexit__(None, None, None)))
        return self._end(plan, result)

    async def _plan(self, resolved: Resolved, ledger: Ledger, clock: Clock) -> Plan:
        forks = self.flags.forks
        return await make_plan(resolved, memory=ledger.memory, clock=clock, forks=forks, limits=self.limits)

    def _may_go_on(self, plan: Plan) -> bool:
        """Show the plan and ask; raises ``RefusedError`` where the answer is no."""
        self._show_before(plan)
        if plan.errors and not self.keep_going:
            self._give_plan_alone(plan)
            return False
        try:
            ask(plan, yes=self.yes)
        except RefusedError:
            self._give_plan_alone(plan)
            raise
        return True

    async def _apply(self, plan: Plan, resolved: Resolved, ledger: Ledger, clock: Clock) -> Result:
        sound = replace(plan, targets=tuple(target for target in plan.targets if target.error is None))
        return await run_plan(sound, specs_of(resolved), ledger, clock, self.flags, self.playbooks)

    def _end(self, plan: Plan, result: Result) -> int:
        self._show_after(plan, result)
        if result.interrupted:
            return 130
        return 0 if result.ok and not plan.errors else 3

    def _show_before(self, plan: Plan) -> None:
        if self.flags.format == "text":
            show_plan(plan, self.flags, keep_going=self.keep_going)
        elif sys.stdin.isatty() and not self.yes:
            say(plan_text(plan, self.flags, sys.stderr, keep_going=self.keep_going))

    def _give_plan_alone(self, plan: Plan) -> None:
        if self.flags.format != "text":
            show_plan(plan, self.flags)

    def _show_after(self, plan: Plan, result: Result) -> None:
        if self.flags.format == "json":
            give(dump(result_json(plan_to_json(plan), result)))
        elif self.flags.format == "markdown":
            give(markdown.render_result(result))
        elif self.flags.format == "html":
            give(html.render_result(result))
        elif result.targets:
            colour = colour_on(sys.stdout, no_color=self.flags.no_color)
            give(text.render_result(result, colour=colour, verbosity=self.flags.verbosity))


async def _enter(awaitable: Awaitable[T]) -> T:
    return await awaitable
