"""The whole plan: the surveys of all servers, in the order of the run, with the limits that it exceeds."""

from __future__ import annotations

import os.path
from collections.abc import Sequence
from datetime import datetime

from msgspec import structs

from msauto.model.desired import InputFile, ResolvedPlaybooks
from msauto.model.plan import InputHash, Limits, Plan, PlannedServer, Target
from msauto.planning.limits import refusals
from msauto.planning.survey.survey import Survey
from msauto.secrets.redaction import HIDDEN, Secrets


def assemble(
    resolved: ResolvedPlaybooks,
    surveys: Sequence[Survey],
    *,
    created: datetime | str,
    version: str,
    limits: Limits = Limits(),  # noqa: B008 - frozen
) -> Plan:
    """Return the plan of all surveys, with refusals. ``created`` becomes ISO 8601, ``version`` is that of msauto."""
    urls = {work.server.name: work.server.url for work in resolved.work}
    targets = (target for survey in surveys for target in survey.targets)
    plan = Plan(
        created=created if isinstance(created, str) else created.isoformat(timespec="seconds"),
        msauto=version,
        inputs=tuple(_hash_of(file, resolved.secrets) for file in resolved.inputs),
        targets=_refuse_shared_files(sorted(targets, key=lambda target: (target.batch, target.kind != "database"))),
        unchanged=sum(survey.unchanged for survey in surveys),
        skipped=sum(survey.skipped for survey in surveys),
        left_out=sum(survey.left_out for survey in surveys),
        reads=sum(survey.reads for survey in surveys),
        warnings=(
            *resolved.warnings,
            *(f"{survey.server}: {warning}" for survey in surveys for warning in survey.warnings),
        ),
        servers=tuple(PlannedServer(each.server, each.unchanged, urls.get(each.server, "")) for each in surveys),
        batches=resolved.batches,
        settlements=tuple(settlement for survey in surveys for settlement in survey.settlements),
        secrets=resolved.secrets,
    )
    return structs.replace(plan, refusals=refusals(plan, limits))


def _hash_of(file: InputFile, secrets: Secrets) -> InputHash:
    """Return a file as the plan names it, without the hash if it holds a secret that could be guessed from it."""
    may_hold = secrets and (file.content is None or secrets.occurs_in(file.content.decode("utf-8", "replace")))
    return InputHash(file.path, HIDDEN if may_hold else file.sha256)


# Downloads -----------------------------------------------------------------------------------------------------


def _refuse_shared_files(targets: Sequence[Target]) -> tuple[Target, ...]:
    """Return the targets; two downloads into one file are an error of both of their targets."""
    writers: dict[str, list[tuple[int, str]]] = {}
    for number, target in enumerate(targets):
        for request in (each for each in target.requests if each.dest is not None):
            place = str(target.changes[request.changes[0]].source.place)
            writers.setdefault(os.path.normpath(request.dest or ""), []).append((number, place))
    refused = list(targets)
    for dest, those in writers.items():
        shown = [f"{targets[number].server} {targets[number].name!r} ({place})" for number, place in those[:2]]
        more = f" and {len(those) - 2} more" if len(those) > 2 else ""
        error = (
            f"{those[0][1]}: {len(those)} downloads have the same destination {dest}: {' and '.join(shown)}{more}\n"
            "  → make `dest` unique, with {{ asset.title }} or {{ inventory_hostname }}"
        )
        for number in {number for number, _ in those} if len(those) > 1 else ():
            refused[number] = structs.replace(targets[number], changes=(), requests=(), error=error)
    return tuple(refused)
