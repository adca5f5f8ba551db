"""Why targets of a job are not done: by server and cause, worst first. Every form of the summary shows these values."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Annotated, Final

from msgspec import UNSET, Meta, Struct

from msauto.circuit_breaker import BUSY_STATUSES, PASSING, UNAUTHORIZED_STATUSES
from msauto.model.plan import CauseKind
from msauto.model.result import Outcome, TargetResult
from msauto.report.result_view import NOT_DONE, result_lines, severity, without_titles
from msauto.report.sanitizing import name_ranges, show, show_range
from msauto.report.texts import target_key

_ALL_NAMED: Final = 10
_NAMED: Final = 5
"""Up to 10 names are all given; of more, the first 5."""
_MOST_REASONS: Final = 20
"""How many reasons of one server, outcome and kind are shown separately."""


class Cause(Struct, frozen=True, kw_only=True):
    """Targets of one server that are not done for the same reason."""

    server: Annotated[str, Meta(description="its name in the inventory")]
    outcome: Annotated[Outcome, Meta(description="what came of the targets")]
    kind: Annotated[CauseKind | None, Meta(description="the kind of the cause; null: none of these")] = None
    count: Annotated[int, Meta(ge=1, description="how many targets")]
    names: Annotated[tuple[str, ...], Meta(description="their names: all of up to 10, or the first 5")]
    message: Annotated[str, Meta(description="why; <title> stands for the name of each target")]
    remedy: Annotated[str, Meta(description="what to do")] = ""

    @property
    def text(self) -> str:
        """The number, the outcome and the reason, in one line."""
        return f"{self.count} {self.outcome}" + (f": {self.message}" if self.message else "")

    @property
    def named(self) -> str:
        """The names, visible; empty where the message has the only one."""
        if self.count == 1 and self.names[0] in self.message:
            return ""
        more = self.count - len(self.names)
        return ", ".join(map(show_range, name_ranges(self.names))) + (f" and {more} more" if more else "")


def results_so_far(before: tuple[TargetResult, ...], now: Iterable[TargetResult]) -> tuple[TargetResult, ...]:
    """Return the results of a job after a further attempt, one for each target.

    What an earlier attempt changed needs no change in this one, or can no longer be read.
    """
    now = tuple(now)
    known = {target_key(each.target) for each in now if each.target.error is None}
    earlier = {target_key(each.target): each for each in before if is_settled(each)}
    kept = (each for key, each in earlier.items() if key not in known)
    return (*kept, *(each for each in now if each.target.error is None or target_key(each.target) not in earlier))


def is_settled(result: TargetResult) -> bool:
    """Return whether a further attempt leaves a target as it is: it is done, or a request of it is in doubt."""
    in_doubt = any(each.outcome == "unverified" for each in result.requests)
    return result.outcome in {"changed", "unverified"} or in_doubt


def causes_of(results: Iterable[TargetResult], lost: Collection[str]) -> tuple[Cause, ...]:
    """Return why targets are not done, worst first; ``lost`` are the servers that do not answer."""
    left = [each for each in results if each.outcome in NOT_DONE]
    busy = {each.target.server for each in left if _statuses(each) & BUSY_STATUSES}
    groups: dict[tuple[str, Outcome, CauseKind | None], dict[tuple[str, str], list[TargetResult]]] = {}
    for each in left:
        key = each.target.server, each.outcome, _kind_of(each, lost, busy)
        message, remedy = (without_titles(text, each.target) for text in _reason(each))
        groups.setdefault(key, {}).setdefault((message, remedy), []).append(each)
    causes = (cause for key, reasons in groups.items() for cause in _causes(*key, reasons))
    return tuple(sorted(causes, key=lambda cause: (severity(cause.outcome), -cause.count)))


def may_get_better(causes: Sequence[Cause], *, every: bool) -> bool:
    """Return whether another attempt is safe and may help: with some targets, or only where it may with ``every`` one.

    What is unverified is left to the user. An account that is rejected is not tried again: that could lock it.
    """
    helps = [each.kind in PASSING and each.outcome in {"failed", "not attempted"} for each in causes]
    rejected = any(each.kind == "account rejected" for each in causes)
    return not rejected and (all(helps) if every else any(helps))


def _statuses(result: TargetResult) -> set[int | None]:
    return {each.status for each in result.requests if each.outcome in {"failed", "unverified"}}


def _kind_of(result: TargetResult, lost: Collection[str], busy: Collection[str]) -> CauseKind | None:
    target, statuses = result.target, _statuses(result)
    if target.error is not None:
        unknown: CauseKind | None = "no connection" if target.server in lost else None
        return unknown if target.cause is UNSET else target.cause
    if statuses & UNAUTHORIZED_STATUSES:
        return "account rejected"
    if statuses & BUSY_STATUSES or (not statuses and target.server in busy):
        return "busy"
    return "no connection" if target.server in lost and statuses <= {None} else None


def _reason(result: TargetResult) -> tuple[str, str]:
    """Return why a target is not done, and what to do: each in one line, without server, place and read request."""
    lines: dict[str, list[str]] = {"message": [], "difference": [], "advice": []}
    for kind, line in result_lines(result):
        lines.setdefault(kind, []).append(line.strip())
    server = re.escape(show(result.target.server))
    message = "; ".join([*lines["message"][:1], *lines["difference"][:1]])
    message = re.sub(rf"^(\S+:\d+:\d+: )?(server {server}(, database [^:]+| at \S+)?: )?(GET \S+: )?", "", message)
    return message, " ".join(lines["advice"]).removeprefix("→ ")


def _causes(
    server: str, outcome: Outcome, kind: CauseKind | None, reasons: dict[tuple[str, str], list[TargetResult]]
) -> Iterator[Cause]:
    """Yield the cause of each reason; of very many, one with all their targets."""
    if len(reasons) > _MOST_REASONS:
        (message, remedy), *_ = reasons
        all_targets = [each for those in reasons.values() for each in those]
        reasons = {(f"{message} (and {len(reasons) - 1} other reasons)", remedy): all_targets}
    for (message, remedy), results in reasons.items():
        if len(results) == 1:
            message, remedy = _reason(results[0])
        names = tuple(each.target.name for each in results)
        shown = names if len(names) <= _ALL_NAMED else names[:_NAMED]
        yield Cause(
            server=server, outcome=outcome, kind=kind, count=len(names), names=shown, message=message, remedy=remedy
        )
