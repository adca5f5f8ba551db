"""The plan as JSON, both ways (the contract, «The plan (JSON)»): what is saved can be applied as it was shown.

Beyond the contract each target carries what applying needs (address, looked, expectations): extra keys. So does the
whole a ``checksum``: what a slip of the hand, or a merge, has changed is refused. It is no signature.
"""

from __future__ import annotations

import base64
from dataclasses import asdict
from fractions import Fraction
from typing import Any

from msauto.model.live import show_folder
from msauto.model.plan import Address, Body, Change, Expectation, Plan, Request, Settlement, Target
from msauto.planning.saved_plans.plan_descriptions import described
from msauto.planning.saved_plans.plan_schema import FORMAT, VERSION, PlanFile, checksum, read_plan
from msauto.secrets.redactor import redact_plan


def plan_to_json(plan: Plan) -> dict[str, Any]:
    """Return the plan as a JSON object; the same plan is always the same object. It holds no secret of the plan."""
    plan = redact_plan(plan)
    data: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "created": plan.created,
        "msauto": plan.msauto,
        "inputs": [{"path": file.path, "sha256": file.sha256} for file in plan.inputs],
        "summary": summary(plan),
        "refusals": [{"code": r.code, "limit": r.limit, "count": r.count, "remedy": r.remedy} for r in plan.refusals],
        "warnings": list(plan.warnings),
        "servers": _servers(plan),
        "targets": [target_to_json(target) for target in plan.targets],
        "batches": [
            {"play": each.play, "servers": list(each.servers), "max_fail": each.max_fail, "fatal": each.fatal}
            for each in plan.batches
        ],
        "settlements": [_settlement(each) for each in plan.settlements],
    }
    return data | {"checksum": checksum(data)}


def plan_from_json(data: object, *, path: str = "the plan file") -> Plan:
    """Read a plan. Raises ``InputError`` for what is no plan, and for one of another version."""
    return read_plan(data, path)


def plan_schema() -> dict[str, Any]:
    """Return the JSON Schema of a saved plan (``msauto schema plan``)."""
    return described(PlanFile.model_json_schema())


def summary(plan: Plan) -> dict[str, int]:
    """Return the counts: targets of kind asset that change, changes by action, and what it costs."""
    assets = sum(target.kind == "asset" and bool(target.changes) for target in plan.targets)
    counts = {"add": plan.count("add"), "change": plan.count("change"), "delete": plan.count("delete")}
    return {
        "assets": assets,
        **counts,
        "run": plan.count("run"),
        "unchanged": plan.unchanged,
        "skipped": plan.skipped,
        **({"left_out": plan.left_out} if plan.left_out else {}),
        "errors": plan.errors,
        "requests": plan.requests,
        "reads": plan.reads,
    }


def target_to_json(target: Target) -> dict[str, Any]:
    """Return one target as in the plan's JSON form."""
    return {
        "server": target.server,
        "database": target.database,
        "kind": target.kind,
        "name": target.name,
        "folder": show_folder(target.folder) if target.folder is not None else None,
        "fingerprint": target.fingerprint,
        "changes": [_change(change) for change in target.changes],
        "requests": [request_to_json(request) for request in target.requests],
        "error": target.error,
        "address": _address(target.address),
        "address_after": _address(target.address_after),
        "link_id": target.link_id,
        "create_time": target.create_time,
        "looked": list(target.looked),
        "rate": _rate(target.rate),
        "wait": target.wait,
        "emptied": [{"aspect": aspect, "count": count} for aspect, count in target.emptied],
        "places": [show_folder(folder) for folder in target.places],
        "batch": target.batch,
    }


def _servers(plan: Plan) -> list[dict[str, Any]]:
    urls = dict(plan.urls)
    return [
        {"name": name} | ({"url": urls[name]} if name in urls else {}) | {"unchanged": count}
        for name, count in plan.unchanged_by_server
    ]


def _settlement(settlement: Settlement) -> dict[str, Any]:
    return {**asdict(settlement.target), "item": settlement.item, "value": settlement.value}


def _change(change: Change) -> dict[str, Any]:
    source = change.source
    shown: dict[str, Any] = {
        "action": change.action,
        "aspect": change.aspect,
        "key": change.key,
        "before": change.before,
        "after": change.after,
        "basis": change.basis,
        "reversible": change.reversible,
        "source": {
            "file": source.place.file,
            "line": source.place.line,
            "column": source.place.column,
            "task": source.task,
        },
    }
    more = {"exactly": change.exactly, "handler": change.handler, "pending": change.pending, "secret": change.secret}
    return shown | {name: value for name, value in more.items() if value}


def request_to_json(request: Request) -> dict[str, Any]:
    """Return one request as in the plan's JSON form."""
    shown: dict[str, Any] = {"method": request.method, "path": request.path, "changes": list(request.changes)}
    if request.body is not None:
        shown["body"] = {"media_type": request.body.media_type} if request.secret else _body(request.body)
    if request.dest is not None:
        shown["dest"] = request.dest
    shown |= {"expect": [_expect(expect) for expect in request.expect]}
    more = {"guarded": request.guarded, "secret": request.secret}
    return shown | {name: True for name, value in more.items() if value}


def _body(body: Body) -> dict[str, str]:
    shown = {"sha256": body.sha256, "media_type": body.media_type}
    try:
        text = body.content.decode("utf-8")
    except UnicodeDecodeError:
        return shown | {"base64": base64.b64encode(body.content).decode("ascii")}
    return shown | {"text": text}


def _expect(expect: Expectation) -> dict[str, Any]:
    shown: dict[str, Any] = {"aspect": expect.aspect, "key": expect.key, "want": expect.desired}
    shown |= {} if expect.visible else {"visible": False}
    shown |= {"not_uids": list(expect.not_uids)} if expect.not_uids else {}
    shown |= {"secret": True} if expect.secret else {}
    return shown | ({"kept": dict(expect.preserved)} if expect.preserved else {})


def _address(address: Address) -> dict[str, str]:
    return {"name": address.name} | ({"namespace": address.namespace} if address.namespace else {})


def _rate(rate: Fraction | None) -> str | None:
    return None if rate is None else f"{rate.numerator}/{rate.denominator}"
