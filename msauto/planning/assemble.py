"""The whole plan: the surveys of all servers, in the order of the run, with what a person must decide first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from msauto.model.limits import Limits
from msauto.model.plan import Plan, Target
from msauto.model.wanted import Resolved
from msauto.planning.downloads import without_conflicts
from msauto.planning.limits import refusals
from msauto.planning.survey import Survey


def assemble(
    resolved: Resolved,
    surveys: Sequence[Survey],
    *,
    created: datetime | str,
    version: str,
    limits: Limits = Limits(),  # noqa: B008 - frozen
) -> Plan:
    """Return the plan of all surveys, refusals included. ``created`` is written as ISO 8601, ``version`` is ours."""
    plan = Plan(
        created=created if isinstance(created, str) else created.isoformat(timespec="seconds"),
        msauto=version,
        inputs=resolved.inputs,
        targets=without_conflicts(_in_order(target for survey in surveys for target in survey.targets)),
        unchanged=sum(survey.unchanged for survey in surveys),
        skipped=sum(survey.skipped for survey in surveys),
        reads=sum(survey.reads for survey in surveys),
        warnings=(*resolved.warnings, *(_of(survey, warning) for survey in surveys for warning in survey.warnings)),
        servers=tuple(survey.server for survey in surveys),
        unchanged_by_server=tuple((survey.server, survey.unchanged) for survey in surveys),
        urls=tuple((work.server.name, work.server.url) for work in resolved.work),
        batches=resolved.batches,
        settlements=tuple(settlement for survey in surveys for settlement in survey.settlements),
        secrets=resolved.secrets.known(),
    )
    return replace(plan, refusals=refusals(plan, limits))


def _in_order(targets: Iterable[Target]) -> list[Target]:
    """Return the targets batch by batch, in each the databases first: the order of the run."""
    return sorted(targets, key=lambda target: (target.batch, target.kind != "database"))


def _of(survey: Survey, warning: str) -> str:
    return f"{survey.server}: {warning}"
