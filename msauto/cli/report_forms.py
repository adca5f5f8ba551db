"""The forms of a plan and of a result (``--format``). A new form is a module of ``report`` and a row of ``FORMS``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from msauto.errors import MsautoError
from msauto.model.plan import Plan
from msauto.model.result import Result
from msauto.planning.saved_plans.plan_file import plan_document
from msauto.report import html, markdown
from msauto.report.ci import junit
from msauto.report.json import dump_document, error_json, result_json
from msauto.report.terminal import plan_text, text


@dataclass(frozen=True, slots=True)
class View:
    """How to show a plan or a result; each form uses what applies to it.

    ``width``: columns of the terminal. ``ascii_only``: no other signs than ASCII, except in titles. ``summary``:
    counts, deletions and refusals alone. ``name``: the playbook, by which CI finds its comment again.
    ``keep_going``: targets in error are left out. ``error``: why the command ends without applying the plan.
    ``stills``: pictures of clips, for HTML.
    """

    colour: bool = False
    verbosity: int = 0
    width: int = 80
    ascii_only: bool = False
    summary: bool = False
    name: str = "plan"
    keep_going: bool = False
    error: MsautoError | None = None
    stills: html.Stills = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReportForm:
    """The functions that write a plan, and the result of applying it, in one form: in pieces of any size."""

    plan: Callable[[Plan, View], Iterable[str]]
    result: Callable[[Result, View], Iterable[str]]


def _text_plan(plan: Plan, view: View) -> Iterable[str]:
    return plan_text.render_plan(
        plan,
        colour=view.colour,
        verbosity=view.verbosity,
        width=view.width,
        ascii_only=view.ascii_only,
        keep_going=view.keep_going,
        summary=view.summary,
    )


def _text_result(result: Result, view: View) -> Iterable[str]:
    if not result.targets and not result.plan.left_out:
        return ()  # the plan is on stdout already
    return (
        text.render_result(
            result, colour=view.colour, verbosity=view.verbosity, width=view.width, ascii_only=view.ascii_only
        ),
    )


def _json_plan(plan: Plan, view: View) -> Iterable[str]:
    if view.error is None:
        return dump_document(plan_document(plan))
    view.error.shown = True
    return dump_document(plan_document(plan) | error_json(view.error))


FORMS: Final[Mapping[str, ReportForm]] = {
    "text": ReportForm(_text_plan, _text_result),
    "json": ReportForm(_json_plan, lambda result, _: dump_document(result_json(plan_document(result.plan), result))),
    "markdown": ReportForm(
        lambda plan, view: markdown.render_plan(
            plan, name=view.name, verbosity=view.verbosity, keep_going=view.keep_going
        ),
        lambda result, view: markdown.render_result(result, name=view.name),
    ),
    "html": ReportForm(
        lambda plan, view: html.render_plan(plan, view.stills, keep_going=view.keep_going),
        lambda result, _: html.render_result(result),
    ),
    "junit": ReportForm(lambda plan, _: (junit.render_plan(plan),), lambda result, _: (junit.render_result(result),)),
}
PLAN_FORMS: Final = tuple(form for form in FORMS if form != "junit")
"""The forms of ``msauto plan``: JUnit XML is for what came of a run."""
