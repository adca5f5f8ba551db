"""The plan as JSON, both ways (the contract, "The plan (JSON)"): what was approved, and nothing that is sent.

The types of :mod:`msauto.model.plan` are the format. A saved plan is a claim: it is made again from the files and the
options that it names, and :mod:`.plan_comparison` compares the two.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct, structs

from msauto.errors import InputError, Problem, SourceLocation
from msauto.model.codec import LazyItems, describe_types, from_json, to_json
from msauto.model.desired import Batch
from msauto.model.plan import InputHash, Plan, PlannedServer, PlanOptions, Refusal, Settlement, Summary, Target
from msauto.model.result import ReportedProblem
from msauto.secrets.redactor import redact_plan

FORMAT: Final = "msauto-plan"
VERSION: Final = 1


class PlanDocument(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """The whole JSON document."""

    format: Annotated[Literal["msauto-plan"], Meta(description="always msauto-plan")]
    version: Annotated[Literal[1], Meta(description="the version of this format")]
    created: Annotated[str, Meta(description="when the plan was made, ISO 8601")]
    msauto: Annotated[str, Meta(description="the version of msauto that made it")]
    inputs: Annotated[tuple[InputHash, ...], Meta(description="the files that it was made from")]
    settings: Annotated[InputHash | None, Meta(description="the settings file whose limits apply, if there is one")] = (
        None
    )
    summary: Annotated[Summary, Meta(description="the counts")]
    refusals: Annotated[
        tuple[Refusal, ...], Meta(description="limits that the plan exceeds; each names the flag that allows it")
    ]
    warnings: Annotated[tuple[str, ...], Meta(description="what to know before applying")]
    servers: Annotated[tuple[PlannedServer, ...], Meta(description="all servers of the run")]
    targets: Annotated[
        tuple[Target, ...],
        Meta(description="what changes, and what cannot be planned; unchanged targets are only counted"),
    ]
    batches: Annotated[tuple[Batch, ...], Meta(description="which servers go together, in order (serial)")]
    settlements: Annotated[
        tuple[Settlement, ...], Meta(description="what applying writes into the ledger without a request")
    ]
    options: Annotated[PlanOptions, Meta(description="what else shaped it: with these, it is made again")]


_SHARED: Final = (
    "created", "msauto", "inputs", "settings", "refusals", "warnings", "servers", "targets", "batches", "settlements",
    "options",
)  # fmt: skip
_COUNTS: Final = ("unchanged", "skipped", "left_out", "reads")
_REMEDY: Final = "make the plan again with `msauto plan --out`; a plan file is not meant to be edited"


def plan_document(plan: Plan) -> dict[str, Any]:
    """Return the plan as a JSON object that holds no secret of the plan; its targets are :class:`LazyItems`."""
    plan = redact_plan(plan)
    shared = {name: getattr(plan, name) for name in _SHARED} | {"targets": ()}
    data: dict[str, Any] = to_json(PlanDocument(format=FORMAT, version=VERSION, summary=plan.summary, **shared))
    data["targets"] = LazyItems(plan.targets, lambda target: to_json(structs.replace(target, holding=UNSET)))
    return data


def plan_from_json(data: object, *, path: str = "the plan file") -> Plan:
    """Read the JSON value of a plan file. Raises ``InputError`` for anything but a plan as we write it."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise _refuse(path, f"not a plan: `format` is not {FORMAT!r}", _REMEDY)
    if data.get("version") != VERSION:
        message = f"the plan has version {data.get('version')!r}; this msauto reads version {VERSION}"
        raise _refuse(path, message, "apply it with the msauto that made it, or make it again")
    for key in ("result", "problems"):
        if key in data:
            raise _refuse(path, f"this is the output of `msauto apply`, not a plan: it has `{key}`", _REMEDY)
    try:
        document = from_json(PlanDocument, data)
    except ValueError as error:
        raise _refuse(path, str(error), _REMEDY) from None
    counts = {name: getattr(document.summary, name) for name in _COUNTS}
    return Plan(**{name: getattr(document, name) for name in _SHARED}, **counts)


def plan_schema() -> dict[str, Any]:
    """Return the JSON Schema (``msauto schema plan``): of a saved plan, and of what ``plan`` and ``apply`` print."""
    _, parts = describe_types(PlanDocument)
    document = parts.pop("PlanDocument")
    problems, more = describe_types(tuple[ReportedProblem, ...])
    document["properties"] |= {
        "problems": {**problems, "description": "why nothing was planned or applied: such a document is not a plan"},
        "result": {"description": "what came of the run, if it was applied: such a document is not a plan"},
    }
    parts |= more
    del parts["Target"]["properties"]["holding"]  # never written
    for name in ("Target", "Request"):
        parts[name]["properties"]["result"] = {"description": "what came of it, if the plan was applied"}
    for part in (document, *parts.values()):
        for key in ("title", "description"):
            part.pop(key, None)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "msauto plan"}
    return {**head, **document, "$defs": dict(sorted(parts.items()))}


def _refuse(path: str, message: str, remedy: str) -> InputError:
    return InputError([Problem(message, SourceLocation(path), remedy, kind="plan-file")])
