"""The forms of plans and results. A new form (``--format``) is a module of ``report`` and a row of ``FORMS``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from msauto.model.plan import Plan
from msauto.model.result import Result
from msauto.planning.saved_plan import plan_document
from msauto.report import ci_forms, html, markdown, text
from msauto.report.json import dump_document, error_json, result_json
from msauto.report.layout import Layout


@dataclass(frozen=True, slots=True)
class ReportForm:
    """The functions that write a plan, and the result of applying it, in one form: in pieces of any size."""

    plan: Callable[[Plan, Layout], Iterable[str]]
    result: Callable[[Result, Layout], Iterable[str]]


def report_name(playbook: str) -> str:
    """Return a playbook as reports name it: CI finds its comment again by this name."""
    return re.sub(r"[^A-Za-z0-9_.]+", "-", Path(playbook).stem)


def _json_plan(plan: Plan, layout: Layout) -> Iterable[str]:
    if layout.error is None:
        return dump_document(plan_document(plan))
    layout.error.shown = True
    return dump_document(plan_document(plan) | error_json(layout.error))


FORMS: Final[Mapping[str, ReportForm]] = {
    "text": ReportForm(text.render_plan, text.render_result),
    "json": ReportForm(_json_plan, lambda result, _: dump_document(result_json(plan_document(result.plan), result))),
    "markdown": ReportForm(markdown.render_plan, markdown.render_result),
    "html": ReportForm(html.render_plan, html.render_result),
    "junit": ReportForm(
        lambda plan, _: (ci_forms.render_plan(plan),), lambda result, _: (ci_forms.render_result(result),)
    ),
}
