"""The forms of plans and results. A new form (``--format``) is a module of ``report`` and a row of ``FORMS``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from msauto.model.plan import Plan
    from msauto.model.result import Result
    from msauto.report.layout import Layout


@dataclass(frozen=True, slots=True)
class ReportForm:
    """The functions that write a plan, and the result of applying it, in one form: in pieces of any size."""

    plan: Callable[[Plan, Layout], Iterable[str]]
    result: Callable[[Result, Layout], Iterable[str]]


FORMS: Final[Mapping[str, str]] = {
    "text": "msauto.report.text",
    "json": __name__,
    "markdown": "msauto.report.markdown",
    "html": "msauto.plugins.pages.html",
    "junit": "msauto.report.ci_forms",
}
"""The forms, each with the module of its ``render_plan`` and ``render_result``."""


def report_form(name: str) -> ReportForm:
    """Import one form."""
    module = import_module(FORMS[name])
    return ReportForm(module.render_plan, module.render_result)


def report_name(playbook: str) -> str:
    """Return a playbook as reports name it: CI finds its comment again by this name."""
    return re.sub(r"[^A-Za-z0-9_.]+", "-", Path(playbook).stem)


def render_plan(plan: Plan, layout: Layout) -> Iterable[str]:
    """Return a plan as JSON, with the error that it ends with."""
    from msauto.planning.saved_plan import plan_document
    from msauto.report.json import dump_document, error_json

    if layout.error is None:
        return dump_document(plan_document(plan))
    layout.error.shown = True
    return dump_document(plan_document(plan) | error_json(layout.error))


def render_result(result: Result, _: Layout) -> Iterable[str]:
    """Return a result as JSON."""
    from msauto.planning.saved_plan import plan_document
    from msauto.report.json import dump_document, result_json

    return dump_document(result_json(plan_document(result.plan), result))
