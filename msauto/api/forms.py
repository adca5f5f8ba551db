"""The forms of plans and results (``--format``): those of the kernel, and those that plugins bring."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msauto import sockets

if TYPE_CHECKING:
    from msauto.model.plan import Plan
    from msauto.model.result import Result
    from msauto.report.layout import Layout


@dataclass(frozen=True, slots=True)
class ReportForm:
    """The functions that write a plan, and the result of applying it, in one form: in pieces of any size.

    ``page`` writes any page, where the form has pages.
    """

    plan: Callable[[Plan, Layout], Iterable[str]]
    result: Callable[[Result, Layout], Iterable[str]]
    page: Callable[..., Iterable[str]] | None = None


FORMS: Final[Mapping[str, str]] = {
    "text": "msauto.report.text",
    "json": __name__,
    "markdown": "msauto.report.markdown",
    "junit": "msauto.report.ci_forms",
}
"""The forms of the kernel, each with the module of its ``render_plan`` and ``render_result``."""


def report_form(name: str) -> ReportForm:
    """Import one form, of the kernel or of a plugin; raises :class:`MsautoError` for an unknown one."""
    place = FORMS.get(name) or sockets.place_of("report_forms", name)
    if place is None:
        raise sockets.missing("report_forms", name, FORMS)
    module = sockets.load_place(place)
    return ReportForm(
        module.render_plan, module.render_result, getattr(module, "render_page", None)
    )


def page_writer() -> Callable[..., Iterable[str]]:
    """Return what writes any HTML page: its head, its parts, and a template with values of its own."""
    page = report_form("html").page
    assert page is not None, "the form html has pages"
    return page


def form_names() -> list[str]:
    """Return the names of all forms that are installed with msauto, without importing them."""
    return [*FORMS, *sockets.names_of("report_forms")]


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
