"""The whole plan: the surveys of all servers, in the order of the run, with what a person must decide first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec import structs

from msauto.model.desired import InputFile, ResolvedPlaybooks
from msauto.model.limits import Limits
from msauto.model.plan import InputHash, Plan, PlannedServer, Target
from msauto.planning.downloads import without_conflicts
from msauto.planning.limits import refusals
from msauto.planning.survey.survey import Survey
from msauto.secrets.taint import HIDDEN, Secrets


def assemble(
    resolved: ResolvedPlaybooks,
    surveys: Sequence[Survey],
    *,
    created: datetime | str,
    version: str,
    limits: Limits = Limits(),  # noqa: B008 - frozen
) -> Plan:
    """Return the plan of all surveys, refusals included. ``created`` is written as ISO 8601, ``version`` is ours."""
    urls = {work.server.name: work.server.url for work in resolved.work}
    plan = Plan(
        created=created if isinstance(created, str) else created.isoformat(timespec="seconds"),
        msauto=version,
        inputs=tuple(_without_guess(file, resolved.secrets.known()) for file in resolved.inputs),
        targets=without_conflicts(_in_order(target for survey in surveys for target in survey.targets)),
        unchanged=sum(survey.unchanged for survey in surveys),
        skipped=sum(survey.skipped for survey in surveys),
        left_out=sum(survey.left_out for survey in surveys),
        reads=sum(survey.reads for survey in surveys),
        warnings=(*resolved.warnings, *(_of(survey, warning) for survey in surveys for warning in survey.warnings)),
        servers=tuple(PlannedServer(each.server, each.unchanged, urls.get(each.server, "")) for each in surveys),
        batches=resolved.batches,
        settlements=tuple(settlement for survey in surveys for settlement in survey.settlements),
        secrets=resolved.secrets.known(),
    )
    return structs.replace(plan, refusals=refusals(plan, limits))


_LARGE = 1_000_000
"""Larger files are not looked through; where there are secrets at all, they may be among them."""


def _without_guess(file: InputFile, secrets: Secrets) -> InputHash:
    """Return a file as the plan names it; the hash of one that holds a secret would tell a short one to who tries."""
    told = secrets and (len(file.content) > _LARGE or secrets.occurs_in(file.content.decode("utf-8", "replace")))
    return InputHash(file.path, HIDDEN if told else file.sha256)


def _in_order(targets: Iterable[Target]) -> list[Target]:
    """Return the targets batch by batch, in each the databases first: the order of the run."""
    return sorted(targets, key=lambda target: (target.batch, target.kind != "database"))


def _of(survey: Survey, warning: str) -> str:
    return f"{survey.server}: {warning}"
