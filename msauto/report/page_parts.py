"""What a page is about: its head, and the plans and runs that it shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msauto.model.plan import Target
from msauto.model.result import Result
from msauto.report.plan_view import PlanView, ShownBlocks, shown_blocks, view_plan
from msauto.report.result_view import ResultView, view_result


class PageHead(NamedTuple):
    """The head of a page. ``status``: what the plan is, or how the run ended; ``facts``: by whom, when, with what."""

    subject: str
    status: str
    sentence: str
    facts: Sequence[str]


class PagePart(NamedTuple):
    """A plan, or a run with the plan that it applied, on a page; ``job`` is its job in a batch."""

    view: PlanView
    result: ResultView | None = None
    job: str = ""

    @property
    def targets(self) -> tuple[Target, ...]:
        """Its targets, in the order of the plan."""
        if self.result is None:
            return self.view.plan.targets
        return tuple(target.target for target in self.result.result.targets)

    @property
    def sentence(self) -> str:
        """What comes or came of it, in one sentence or more."""
        if self.result is None:
            return self.view.sentence
        return self.result.sentence

    @property
    def shown(self) -> ShownBlocks:
        """The blocks that are shown."""
        return shown_blocks(self.view.blocks)


def run_part(result: Result, job: str = "") -> PagePart:
    """Return the part of a run."""
    shown = view_result(result)
    return PagePart(view_plan(shown.result.plan), shown, job)
