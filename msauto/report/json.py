"""JSON: the plan's mapping is made by planning; here it is written, and joined with what came of it."""

from __future__ import annotations

import json
import re
import struct
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping
from datetime import date
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from typing import Any, Final

from msauto import errors
from msauto.model.codec import to_json
from msauto.model.result import OUTCOMES, ReportedProblem, RequestResult, Result, TargetResult, key_of
from msauto.report.sanitizing import is_hidden
from msauto.report.sentences import TargetKey, target_key

_UNPLAIN: Final = re.compile(r"[^\n -~]")
"""Signs that may have to be escaped: a plan of 300,000 targets has 400 MB, too many to check one by one."""
_PIECES: Final = 10_000  # of JSON, joined at a time: all at once they take five times the text


def dump(value: object) -> str:
    """Write JSON: names in their order, two blanks of indent, signs as they are, a newline at the end.

    What a terminal would obey or a reader not see is written as an escape, which changes no value. Times become
    ISO 8601, rates ``30000/1001``. Raises ``TypeError`` for anything else, ``ValueError`` for NaN and infinity.
    """
    encoder = json.JSONEncoder(ensure_ascii=False, indent=2, allow_nan=False, default=_plain)
    pieces = encoder.iterencode(value)
    parts: list[str] = []
    while text := "".join(islice(pieces, _PIECES)):
        parts.append(_UNPLAIN.sub(lambda found: _harmless(found[0]), text))
    return "".join((*parts, "\n"))


def result_json(plan_json: Mapping[str, Any], result: Result) -> dict[str, Any]:
    """Return the plan's JSON with a ``result`` for the run, for each target and for each request.

    ``plan_json`` is not touched; targets are found by server, database, kind and name. A target that the run does
    not know (an error that was left out) was not attempted.
    """
    results: dict[TargetKey, deque[TargetResult]] = defaultdict(deque)
    for each in result.targets:
        results[target_key(each.target)].append(each)
    targets = []
    for target in plan_json["targets"]:
        known = results[target["server"], target["database"], target["kind"], target["name"]]
        targets.append(_with_result(target, known.popleft() if known else None))
    return {**plan_json, "targets": targets, "result": _summary(result)}


def problems_json(problems: Iterable[errors.Problem]) -> dict[str, Any]:
    """Return problems of playbooks and inventories as ``{"problems": [...]}``, each a :class:`ReportedProblem`."""
    return {"problems": [_problem(problem, "input") for problem in problems]}


_CODES: Final[Mapping[type[errors.MsautoError], str]] = {
    errors.PlanningError: "planning",
    errors.RefusedError: "refused",
    errors.LockedError: "locked",
    errors.LedgerError: "ledger",
    errors.ServerError: "server",
}


def error_json(error: errors.MsautoError | str, remedy: str = "") -> dict[str, Any]:
    """Return why nothing was planned or applied as ``{"problems": [...]}``; a text is bad usage."""
    if isinstance(error, errors.InputError):
        return problems_json(error.problems)
    if isinstance(error, str):
        return {"problems": [_problem(errors.Problem(error, None, remedy), "usage")]}
    code = next((code for kind, code in _CODES.items() if isinstance(error, kind)), "error")
    place = error.place if isinstance(error, errors.PlanningError) else None
    return {"problems": [_problem(errors.Problem(error.message, place, error.remedy), code)]}


def _problem(problem: errors.Problem, code: str) -> Any:
    place = problem.place
    return to_json(
        ReportedProblem(
            code=code,
            file=place.file if place else None,
            line=place.line if place else 0,
            column=place.column if place else 0,
            message=problem.message,
            remedy=problem.remedy,
            excerpt=problem.excerpt,
            level=problem.level,
        )
    )


def _plain(value: object) -> str:
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Fraction):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


@lru_cache(4096)
def _harmless(sign: str) -> str:
    if not is_hidden(sign):
        return sign
    units = struct.iter_unpack(">H", sign.encode("utf-16-be", "surrogatepass"))
    return "".join(f"\\u{unit:04x}" for (unit,) in units)


def _with_result(target: Mapping[str, Any], result: TargetResult | None) -> dict[str, Any]:
    requests = list(target.get("requests", ()))
    known = list(result.requests) if result else []
    known += [RequestResult("not sent")] * (len(requests) - len(known))
    joined = [{**request, "result": to_json(came)} for request, came in zip(requests, known, strict=False)]
    outcome = ("not attempted", "", ()) if result is None else (result.outcome, result.message, result.differences)
    names = ("outcome", "message", "differences")
    return {**target, "requests": joined, "result": dict(zip(names, to_json(outcome), strict=True))}


def _summary(result: Result) -> dict[str, Any]:
    counts = Counter(target.outcome for target in result.targets)
    return {
        "run": result.run,
        "ok": result.ok,
        "interrupted": result.interrupted,
        **{key_of(outcome): counts[outcome] for outcome in OUTCOMES},
    }
