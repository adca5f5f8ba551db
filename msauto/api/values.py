"""What the library returns: a plan, and the result of applying it. No secret shows in them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Final

from msgspec import Struct

from msauto.api.forms import report_form, report_name
from msauto.api.inputs import PLAYS
from msauto.api.loading import Loaded
from msauto.errors import SourceLocation
from msauto.ledger.locks import this_user
from msauto.model import plan as model
from msauto.model.plan import Change, Refusal, SkippedTarget, Summary, Target
from msauto.model.result import Result as AppliedPlan
from msauto.model.result import TargetResult
from msauto.report.layout import Layout
from msauto.report.texts import plural
from msauto.secrets.redacted_plans import redact_plan

_WIDTH: Final = 100
_PLACE: Final = re.compile(
    rf"(?P<file>[^\n]+?):(?P<line>\d+):(?P<column>\d+): |(?P<path>{PLAYS}\[\S*\]?): "
)
_REMEDY: Final = "\n  → "


class PlanError(Struct, frozen=True):
    """Why one target cannot be planned. ``place`` is in the playbook; ``None`` if it is not the reason."""

    target: Target
    message: str
    place: SourceLocation | None
    remedy: str

    def __str__(self) -> str:
        return str(self.target.error)


def _error_of(target: Target) -> PlanError:
    text, arrow, remedy = str(target.error).rpartition(_REMEDY)
    if not arrow:
        text, remedy = remedy, ""
    place = None
    match = _PLACE.match(text)
    if match is not None:
        text = text[match.end() :]
        place = SourceLocation(
            match["path"] or match["file"], int(match["line"] or 0), int(match["column"] or 0)
        )
    return PlanError(target, text, place, remedy)


class ReportForms:
    """The forms of a plan, or of the result of applying it."""

    @property
    def _shown(self) -> model.Plan | AppliedPlan:
        raise NotImplementedError

    def to_text(self, *, verbose: int = 0) -> str:
        """Return it as ``msauto plan`` or ``apply`` prints it; ``verbose``: 1 adds the requests, 2 also the sources."""
        return self._form("text", verbose)

    def to_json(self) -> str:
        """Return the document of ``--format json``: of a plan, a saved plan for :func:`msauto.load`.

        That of a result is the plan with a ``result`` for each target.
        """
        return self._form("json")

    def to_markdown(self, *, verbose: int = 0) -> str:
        """Return Markdown for a comment or a ticket."""
        return self._form("markdown", verbose)

    def to_html(self) -> str:
        """Return a whole page, which loads nothing from elsewhere."""
        return self._form("html")

    def _repr_html_(self) -> str:
        """Return a page as a notebook shows it: in a frame, so that neither's styles reach the other."""
        style = "width: 100%; height: 32em; border: 0"
        return f'<iframe srcdoc="{escape(self.to_html())}" sandbox="allow-scripts" style="{style}"></iframe>'

    def _form(self, name: str, verbose: int = 0) -> str:
        shown = self._shown
        form = report_form(name)
        plan = shown if isinstance(shown, model.Plan) else shown.plan
        playbook = next(iter(plan.options.playbooks), "plan")
        layout = Layout(verbosity=verbose, width=_WIDTH, name=report_name(playbook), by=this_user())
        if isinstance(shown, model.Plan):
            return "".join(form.plan(shown, layout))
        return "".join(form.result(shown, layout))


@dataclass(frozen=True, eq=False)
class RunPlan(ReportForms):  # not a Struct: see Loaded
    """What applying would do, from :func:`msauto.plan`. Pass it to :func:`msauto.apply`.

    ``unredacted`` holds the secrets of the playbooks: all other attributes show ``***`` in their place.
    """

    loaded: Loaded
    unredacted: model.Plan

    @cached_property
    def _shown(self) -> model.Plan:
        return redact_plan(self.unredacted)

    @property
    def targets(self) -> tuple[Target, ...]:
        """The assets, RSS channels and databases that change, or that cannot be planned, in the order of the run."""
        return self._shown.targets

    @property
    def changes(self) -> tuple[Change, ...]:
        """All changes of all targets, in order; ``place`` is the place of each in the playbook."""
        return tuple(change for target in self.targets for change in target.changes)

    @property
    def summary(self) -> Summary:
        """The counts: ``assets``, ``add``, ``change``, ``delete``, ``run``, ``unchanged``, ``errors``, ``requests``."""
        return self._shown.summary

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """The limits and times that forbid the plan; ``remedy`` of each is the flag or keyword that allows it."""
        return self._shown.refusals

    @property
    def errors(self) -> tuple[PlanError, ...]:
        """Why targets cannot be planned: nothing is applied unless ``keep_going`` leaves these targets out."""
        return tuple(_error_of(target) for target in self.targets if target.error is not None)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know before applying."""
        return self._shown.warnings

    @property
    def skipped(self) -> tuple[SkippedTarget, ...]:
        """The targets that the run does not treat, each with its ``reason``."""
        return self._shown.skipped

    def __repr__(self) -> str:
        counts = self.unredacted.summary
        changes = counts.add + counts.change + counts.delete + counts.run
        shown = [
            plural(changes, "change"),
            plural(counts.requests, "request"),
            f"{counts.unchanged} unchanged",
        ]
        if counts.errors:
            shown.append(plural(counts.errors, "error"))
        if self.refusals:
            codes = [refusal.code for refusal in self.refusals]
            shown.append(f"refused: {', '.join(codes)}")
        return f"<Plan: {', '.join(shown)}>"


@dataclass(frozen=True, eq=False)
class RunResult(ReportForms):
    """What came of a run, from :func:`msauto.apply` or :func:`msauto.undo`; ``run`` is its name in the history."""

    applied: AppliedPlan

    @property
    def _shown(self) -> AppliedPlan:
        return self.applied

    @property
    def run(self) -> str:
        """The name of the run in the history."""
        return self.applied.run

    @property
    def ok(self) -> bool:
        """Whether everything is done, read again, and as desired."""
        return self.applied.ok

    @property
    def targets(self) -> tuple[TargetResult, ...]:
        """What came of each target of the plan: ``target``, ``outcome``, ``message``, ``requests``, ``differences``."""
        return self.applied.targets

    @property
    def counts(self) -> Mapping[str, int]:
        """How many targets have each outcome: ``changed``, ``unchanged``, ``failed``, ``unverified``, and so on."""
        return self.applied.counts

    def to_junit(self) -> str:
        """Return JUnit XML, with a test case for each target."""
        return self._form("junit")

    def __repr__(self) -> str:
        shown = ["ok" if self.ok else "not ok"]
        shown += [f"{count} {outcome}" for outcome, count in self.counts.items() if count]
        return f"<Result {self.run}: {', '.join(shown)}>"


Plan = RunPlan
Result = RunResult
