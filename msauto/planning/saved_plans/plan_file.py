"""The plan as JSON, both ways (the contract, "The plan (JSON)"): a saved plan is applied exactly as it was shown.

The types of :mod:`msauto.model.plan` are the format. Beyond the contract each target carries what applying needs
(address, looked, expectations), and the document a ``checksum`` against accidental changes. It is not a signature.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct, structs

from msauto.errors import InputError, Problem, SourceLocation
from msauto.model.codec import LazyItems, describe_types, from_json, to_json
from msauto.model.desired import Batch
from msauto.model.plan import InputHash, Plan, PlannedServer, Refusal, Settlement, Summary, Target
from msauto.model.result import ReportedProblem
from msauto.planning.saved_plans.plan_integrity import find_undisclosed_request
from msauto.planning.saved_plans.plan_secrets import PlanConcealer, PlanRevealer, ReadSecret, SavedSecret
from msauto.secrets.redaction import HIDDEN, Secrets
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
    secrets: Annotated[
        tuple[SavedSecret, ...], Meta(description="the secrets that a saved plan sends: none of them is in the file")
    ] = ()
    checksum: Annotated[str, Meta(description="over all other keys: a plan that was edited is refused")]


_SHARED: Final = (
    "created", "msauto", "inputs", "settings", "refusals", "warnings", "servers", "targets", "batches", "settlements",
)  # fmt: skip
_COUNTS: Final = ("unchanged", "skipped", "left_out", "reads")
_REMEDY: Final = "make the plan again with `msauto plan --out`; a plan file is not meant to be edited"


def plan_document(plan: Plan) -> dict[str, Any]:
    """Return the plan as a JSON object that holds no secret of the plan; its targets are :class:`LazyItems`."""
    data = _document(redact_plan(plan))
    return data | {"checksum": checksum(data)}


def saved_document(plan: Plan) -> dict[str, Any]:
    """Return the plan as it is saved: as :func:`plan_document`, but it can be applied even if it sends secrets.

    Raises ``PlanningError`` for a secret that has no source, or is sent in an unknown encoding.
    """
    if not plan.secrets:
        return plan_document(plan)
    concealer = PlanConcealer(plan.secrets)
    concealed = concealer.plan(plan)
    data = _document(concealed, concealer.saved())
    if concealer.saved():
        data["secrets"] = to_json(concealer.sealed(checksum(data)))
    return data | {"checksum": checksum(data)}


def _document(plan: Plan, secrets: tuple[SavedSecret, ...] = ()) -> dict[str, Any]:
    shared = {name: getattr(plan, name) for name in _SHARED} | {"targets": ()}
    document = PlanDocument(
        format=FORMAT, version=VERSION, summary=plan.summary, secrets=secrets, checksum="", **shared
    )
    data: dict[str, Any] = to_json(document)
    data["targets"] = LazyItems(plan.targets, lambda target: to_json(structs.replace(target, holding=UNSET)))
    return data


def plan_to_json(plan: Plan) -> dict[str, Any]:
    """Return the plan as a JSON object, whole; equal plans give equal objects."""
    data = plan_document(plan)
    return data | {"targets": [*data["targets"]]}


def plan_from_json(data: object, *, path: str = "the plan file", read_secret: ReadSecret | None = None) -> Plan:
    """Read the JSON value of a plan file. Raises ``InputError`` for anything but a plan as we write it.

    ``read_secret`` reads the secrets that the plan sends; without it, such a plan is checked but cannot be applied.
    """
    plan = _check_document(data, path)
    try:
        document = from_json(PlanDocument, plan)
    except ValueError as error:
        raise _refuse(path, str(error), _REMEDY) from None
    counts = {name: getattr(document.summary, name) for name in _COUNTS}
    found = Plan(**{name: getattr(document, name) for name in _SHARED}, **counts)
    if not document.secrets:
        _check_requests(found, path)
    elif read_secret is not None:
        found = _with_secrets(found, document.secrets, _digest_of(plan), read_secret, path)
    return found


def _digest_of(data: Mapping[str, Any]) -> str:
    """Return the digest of a document that its secrets seal."""
    return checksum({**data, "secrets": [{**each, "seal": ""} for each in data["secrets"]]})


def _with_secrets(
    plan: Plan, secrets: tuple[SavedSecret, ...], digest: str, read_secret: ReadSecret, path: str
) -> Plan:
    """Return the plan with its secrets, checked as a plan without."""
    try:
        revealer = PlanRevealer.open(secrets, read_secret)
    except ValueError as error:
        raise _refuse(path, str(error), _REMEDY) from None
    if not revealer.is_sealed(secrets, digest):
        message = "the plan was changed by someone who does not know the secrets that it sends"
        raise _refuse(path, message, "do not apply it: make the plan again, and ask who changed this one")
    with Secrets(revealer.values).redacted_errors():
        found = revealer.plan(plan)
        for target in found.targets:
            _require_whole(target.name, (to_json(request) for request in target.requests), path)
        _check_requests(found, path)
    return found


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


def checksum(data: Mapping[str, Any]) -> str:
    """Return ``sha256:…`` over the canonical JSON of a plan without its checksum."""
    digest = hashlib.sha256()
    for piece in _canonical_pieces({name: value for name, value in data.items() if name != "checksum"}):
        digest.update(piece.encode("ascii"))
    return f"sha256:{digest.hexdigest()}"


def _canonical_pieces(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield the canonical JSON of an object; its lists item by item."""
    encode = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
    before = "{"
    for name in sorted(data):
        yield f"{before}{encode(name)}:"
        before, value = ",", data[name]
        if isinstance(value, list | tuple) and value:
            yield from (("," if number else "[") + encode(item) for number, item in enumerate(value))
            yield "]"
        else:
            yield encode(value)
    yield "}" if data else "{}"


def _check_document(data: object, path: str) -> dict[str, Any]:
    """Return an unchanged plan document that can be applied; its types are still unchecked."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise _refuse(path, f"not a plan: `format` is not {FORMAT!r}", _REMEDY)
    if data.get("version") != VERSION:
        message = f"the plan has version {data.get('version')!r}; this msauto reads version {VERSION}"
        raise _refuse(path, message, "apply it with the msauto that made it, or make it again")
    if not data.get("secrets"):
        for target, requests in _raw_requests(data):
            _require_whole(target.get("name"), requests, path)
    for key in ("result", "problems"):
        if key in data:
            raise _refuse(path, f"this is the output of `msauto apply`, not a plan: it has `{key}`", _REMEDY)
    if data.get("checksum") != checksum(data):
        raise _refuse(path, "the plan was changed after it was made, or a part of it is missing", _REMEDY)
    return data


def _require_whole(name: object, requests: Iterable[Mapping[str, Any]], path: str) -> None:
    """Refuse a request whose secret is hidden: what is printed holds ``***`` in its place."""
    for request in requests:
        # Paths that we write hold no plain `*`: `***` is refused even where the mark `secret` was removed.
        if request.get("secret") or HIDDEN in str(request.get("path")):
            message = f"{name!r}: a request sends a secret, and a printed plan does not hold it"
            raise _refuse(path, message, "save the plan with --out, or apply the playbooks: msauto apply PLAYBOOK")


def _raw_requests(data: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], list[Mapping[str, Any]]]]:
    targets = data.get("targets")
    for target in targets if isinstance(targets, list) else ():
        requests = target.get("requests") if isinstance(target, dict) else None
        if isinstance(requests, list):
            yield target, [request for request in requests if isinstance(request, dict)]


def _check_requests(plan: Plan, path: str) -> None:
    """Refuse a plan with a request that does something else than its changes show."""
    for target in plan.targets:
        for request in target.requests:
            if any(number >= len(target.changes) for number in request.changes):
                raise _refuse(path, f"a request of {target.name!r} names a change that does not exist", _REMEDY)
            if request.dest is not None and request.method != "GET":
                raise _refuse(path, f"a {request.method} of {target.name!r} has a `dest`: only a GET can", _REMEDY)
    why = find_undisclosed_request(plan)
    if why is not None:
        raise _refuse(path, why, "do not apply it: make the plan again, and ask who made this one")


def _refuse(path: str, message: str, remedy: str) -> InputError:
    return InputError([Problem(message, SourceLocation(path), remedy, kind="plan-file")])
