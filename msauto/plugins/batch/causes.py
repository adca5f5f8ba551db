"""Why targets of a job are not done: by server and cause, worst first. Every form of the summary shows these values."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Annotated, Final, NamedTuple

from msgspec import UNSET, Meta, Struct

from msauto.circuit_breaker import BUSY_STATUSES, PASSING, UNAUTHORIZED_STATUSES
from msauto.model.plan import CauseKind, target_key
from msauto.model.result import Outcome, TargetResult
from msauto.report.plan_view import PLACE, without_server
from msauto.report.result_view import NOT_DONE, result_lines, severity, without_titles
from msauto.report.sanitizing import name_ranges, show_range

_ALL_NAMED: Final = 10
_NAMED: Final = 5
"""Up to 10 names are all given; of more, the first 5."""
RECIPES: Final[Mapping[CauseKind | None, str]] = {
    "no connection": "start the server, or correct its `url`",
    "no answer": "restart the server, or raise `timeouts`",
    "busy": "let the server finish its work, or lower `connections`",
    "account rejected": "correct `auth` of the server, or the rights of the account",
}
"""What to do where the server is the cause: all its targets are one cause."""
_MOST_REASONS: Final = 20
"""How many reasons of one server, outcome and kind are shown separately."""


class Cause(Struct, frozen=True, kw_only=True):
    """Targets of one server that are not done for the same reason.

    Attributes:
        server: its name in the inventory
        outcome: what came of the targets
        kind: the kind of the cause; null: none of these
        count: how many targets
        names: their names: all of up to 10, or the first 5
        message: why; <title> stands for the name of each target
        remedy: what to do
    """

    server: str
    outcome: Outcome
    kind: CauseKind | None = None
    count: Annotated[int, Meta(ge=1)]
    names: tuple[str, ...]
    message: str
    remedy: str = ""

    @property
    def text(self) -> str:
        """The number, the outcome and the reason, in one line."""
        text = f"{self.count} {self.kind if self.kind in RECIPES else self.outcome}"
        if self.message:
            text += f": {self.message}"
        return text

    @property
    def named(self) -> str:
        """The names, visible; empty where the message has the only one."""
        if self.count == 1 and self.names[0] in self.message:
            return ""
        named = ", ".join(map(show_range, name_ranges(self.names)))
        more = self.count - len(self.names)
        if more:
            named += f" and {more} more"
        return named


Causes = tuple[Cause, ...]
TargetResults = tuple[TargetResult, ...]


def results_so_far(before: TargetResults, now: Iterable[TargetResult]) -> TargetResults:
    """Return the results of a job after a further attempt, one for each target.

    What an earlier attempt changed needs no change in this one, or can no longer be read.
    """
    settled = {target_key(result.target): result for result in before if is_settled(result)}
    current = []
    read_now = set()
    for result in now:
        key = target_key(result.target)
        if result.target.error is None:
            read_now.add(key)
        elif key in settled:
            continue
        current.append(result)
    kept = [result for key, result in settled.items() if key not in read_now]
    return (*kept, *current)


def is_settled(result: TargetResult) -> bool:
    """Return whether a further attempt leaves a target as it is: it is done, or a request of it is in doubt."""
    if result.outcome in {"changed", "unverified"}:
        return True
    return any(request.outcome == "unverified" for request in result.requests)


class _CauseGroup(NamedTuple):
    """A server, what came of targets on it (``None``: not done, for a cause with a recipe), and what kind of cause."""

    server: str
    outcome: Outcome | None
    kind: CauseKind | None


class _Reason(NamedTuple):
    """Why a target is not done, and what to do: each in one line, without server, place and read request."""

    message: str
    remedy: str


Reasons = dict[_Reason, list[TargetResult]]
"""Targets by their reasons without their titles."""


def causes_of(results: Iterable[TargetResult], lost: Collection[str]) -> Causes:
    """Return why targets are not done, worst first; ``lost`` are the servers that do not answer."""
    not_done = [result for result in results if result.outcome in NOT_DONE]
    busy = set()
    for result in not_done:
        if _statuses(result) & BUSY_STATUSES:
            busy.add(result.target.server)
    groups = defaultdict[_CauseGroup, Reasons](lambda: defaultdict(list))
    for result in not_done:
        target = result.target
        full = _reason(result)
        reason = _Reason(without_titles(full.message, target), without_titles(full.remedy, target))
        kind = _kind_of(result, lost, busy)
        outcome: Outcome | None = result.outcome
        if kind in RECIPES and outcome in {"failed", "not attempted"}:
            outcome, reason = None, _Reason("", RECIPES[kind])
        groups[_CauseGroup(target.server, outcome, kind)][reason].append(result)
    causes: list[Cause] = []
    for group, reasons in groups.items():
        causes += _causes(group, reasons)
    return tuple(sorted(causes, key=lambda cause: (severity(cause.outcome), -cause.count)))


def _statuses(result: TargetResult) -> set[int | None]:
    failed = {"failed", "unverified"}
    return {request.status for request in result.requests if request.outcome in failed}


def _reason(result: TargetResult) -> _Reason:
    lines = defaultdict[str, list[str]](list)
    for kind, line in result_lines(result):
        lines[kind].append(line.strip())
    message = "; ".join(lines["message"][:1] + lines["difference"][:1])
    message = without_server(message, result.target.server)
    message = re.sub(f"^{PLACE}", "", message)
    return _Reason(message, " ".join(lines["advice"]).removeprefix("→ "))


def _kind_of(
    result: TargetResult, lost: Collection[str], busy: Collection[str]
) -> CauseKind | None:
    target, statuses = result.target, _statuses(result)
    if target.error is None:
        if statuses & UNAUTHORIZED_STATUSES:
            return "account rejected"
        if statuses & BUSY_STATUSES or (not statuses and target.server in busy):
            return "busy"
        if statuses - {None}:
            return None
    elif target.cause is not UNSET:
        return target.cause
    if target.server in lost:
        return "no connection"
    return None


def _causes(group: _CauseGroup, reasons: Reasons) -> Iterator[Cause]:
    """Yield the cause of each reason; of very many, one with all their targets."""
    if len(reasons) > _MOST_REASONS:
        message, remedy = next(iter(reasons))
        message = f"{message} (and {len(reasons) - 1} other reasons)"
        reasons = {_Reason(message, remedy): list(chain.from_iterable(reasons.values()))}
    for (message, remedy), results in reasons.items():
        results.sort(key=lambda result: severity(result.outcome))
        if not group.outcome:
            message = _reason(results[0]).message.removeprefix(f"{group.kind}: ")
        elif len(results) == 1:
            message, remedy = _reason(results[0])
        names = tuple(result.target.name for result in results)
        shown = names if len(names) <= _ALL_NAMED else names[:_NAMED]
        yield Cause(
            server=group.server,
            outcome=results[0].outcome,
            kind=group.kind,
            count=len(names),
            names=shown,
            message=message,
            remedy=remedy,
        )


def may_get_better(causes: Sequence[Cause], *, every: bool) -> bool:
    """Return whether another attempt is safe and may help: with some targets, or only where it may with ``every`` one.

    What is unverified is left to the user. An account that is rejected is not tried again: that could lock it.
    """
    helps = []
    for cause in causes:
        if cause.kind == "account rejected":
            return False
        helps.append(cause.kind in PASSING and cause.outcome in {"failed", "not attempted"})
    return all(helps) if every else any(helps)
