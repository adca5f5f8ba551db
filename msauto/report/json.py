"""JSON: the plan's mapping is made by planning; here it is written, and joined with what came of it."""

from __future__ import annotations

import json
import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain, repeat
from typing import Any, Final

import msgspec

from msauto import errors
from msauto.codec import LazyItems, json_text, to_json
from msauto.model.plan import TargetKey, target_key
from msauto.model.result import ReportedProblem, RequestResult, Result, TargetResult
from msauto.report.sanitizing import is_hidden

_UNPLAIN: Final = re.compile(r"[^\n -~]")
"""Signs that may have to be escaped: a plan of 300,000 targets has 400 MB, too many to check one by one."""


def dump(value: object) -> str:
    """Write JSON: names in their order, two blanks of indent, signs as they are, a newline at the end.

    What a terminal would obey or a reader not see is written as an escape, which changes no value. Times become
    ISO 8601, rates ``30000/1001``. Raises ``TypeError`` for anything else, ``ValueError`` for NaN and infinity.
    """
    encoder = json.JSONEncoder(ensure_ascii=False, indent=2, allow_nan=False, default=json_text)
    return f"{without_hidden_signs(encoder.encode(value))}\n"


def dump_document(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield a JSON object in pieces, as :func:`dump` writes it: :class:`LazyItems` item by item."""
    opening = "{\n  "
    for name, value in document.items():
        yield f"{opening}{json.dumps(name)}: "
        opening = ",\n  "
        if isinstance(value, LazyItems) and value:
            before = "[\n    "
            for item in value:
                yield before + without_hidden_signs(_encode_item(item)).replace("\n", "\n    ")
                before = ",\n    "
            yield "\n  ]"
        else:
            yield dump(value).rstrip().replace("\n", "\n  ")
    yield "\n}\n"


def _encode_item(item: object) -> str:
    """Return an item, which holds only JSON values, with indents."""
    try:
        return msgspec.json.format(msgspec.json.encode(item), indent=2).decode()
    except UnicodeEncodeError:  # the name of a file that is not UTF-8
        return json.dumps(item, ensure_ascii=False, indent=2)


def without_hidden_signs(text: str) -> str:
    """Return JSON in which what a terminal or a CI system would obey, or a reader not see, is an escape."""
    text = text.replace("##", "#\\u0023")  # the beginning of a command to CI systems
    # JSON has escapes for the other signs that are not plain.
    if text.isascii() and "\x7f" not in text:
        return text
    return _UNPLAIN.sub(lambda match: _harmless(match[0]), text)


def result_json(plan_json: Mapping[str, Any], result: Result) -> dict[str, Any]:
    """Return the plan's document with a ``result`` for the run, for each target and for each request.

    ``plan_json`` is not touched; targets are found by server, database, kind and name. A target that the run does
    not know (an error that was left out) was not attempted. The document can be written once.
    """
    results: dict[TargetKey, deque[TargetResult]] = defaultdict(deque)
    for target_result in result.targets:
        results[target_key(target_result.target)].append(target_result)

    def joined(target: Mapping[str, Any]) -> dict[str, Any]:
        same = results[target["server"], target["database"], target["kind"], target["name"]]
        own = same.popleft() if same else None
        return _joined(target, own)

    # "interrupted" is the run; each target has its own outcome
    summary = {
        "run": result.run,
        "ok": result.ok,
        **result.counts,
        "interrupted": result.interrupted,
    }
    return {**plan_json, "targets": plan_json["targets"].then(joined), "result": summary}


def _joined(target: Mapping[str, Any], result: TargetResult | None) -> dict[str, Any]:
    outcome = {"outcome": "not attempted", "message": "", "differences": [], "notes": []}
    sent: tuple[RequestResult, ...] = ()
    if result is not None:
        sent = result.requests
        outcome = {
            "outcome": result.outcome,
            "message": result.message,
            "differences": to_json(result.differences),
            "notes": to_json(result.notes),
        }
    requests = []
    all_results = chain(sent, repeat(RequestResult("not sent")))
    for request, request_result in zip(target.get("requests", ()), all_results, strict=False):
        requests.append({**request, "result": to_json(request_result)})
    return {**target, "requests": requests, "result": outcome}


def problems_json(problems: Iterable[errors.Problem]) -> dict[str, Any]:
    """Return problems of playbooks and inventories as ``{"problems": [...]}``, each a :class:`ReportedProblem`."""
    return {"problems": [_problem(problem, problem.kind) for problem in problems]}


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
    codes = (code for kind, code in _CODES.items() if isinstance(error, kind))
    code = next(codes, "error")
    place = error.place if isinstance(error, errors.PlanningError) else None
    problem = errors.Problem(error.message, place, error.remedy)
    return {"problems": [_problem(problem, code)]}


def _problem(problem: errors.Problem, code: str) -> Any:
    place = problem.place
    where: tuple[str | None, int, int] = (
        (place.file, place.line, place.column) if place else (None, 0, 0)
    )
    return to_json(
        ReportedProblem(
            code, *where, problem.message, problem.remedy, problem.excerpt, problem.level
        )
    )


@lru_cache(4096)
def _harmless(sign: str) -> str:
    if not is_hidden(sign):
        return sign
    # The one of ASCII that JSON shows as it is.
    return "\\u007f" if sign == "\x7f" else json.dumps(sign)[1:-1]
