"""Consent: a person, or ``--yes`` within the limits, agrees to a plan before anything is sent."""

from __future__ import annotations

import sys

import click

from msauto.errors import RefusedError
from msauto.model.plan import Plan


def ask(plan: Plan, *, yes: bool) -> None:
    """Return where the plan may be applied; raise :class:`RefusedError` where it may not.

    Limits come first, whatever ``yes`` says. On a terminal, a plan that only deletes more assets than the limit is
    agreed to by typing the number (contract, «Limits»).
    """
    on_terminal = sys.stdin.isatty() and not yes
    refused = [refusal for refusal in plan.refusals if not (on_terminal and refusal.code == "delete_assets")]
    if refused:
        raise RefusedError(
            "the plan is over the limits: " + ", ".join(f"{r.code} {r.count} (limit {r.limit})" for r in refused),
            remedy="; ".join(refusal.remedy for refusal in refused),
        )
    if yes or not plan.requests:
        return
    if not on_terminal:
        raise RefusedError(
            "nobody agreed to the plan: there is no terminal to ask on", remedy="--yes, or run it on a terminal"
        )
    _ask_person(plan)


def _ask_person(plan: Plan) -> None:
    deleted = sum(change.aspect == "asset" and change.action == "delete" for t in plan.targets for change in t.changes)
    if deleted:
        answer = click.prompt(f"This deletes {deleted} asset(s) for good. Type the number to go on", err=True)
        agreed = answer.strip() == str(deleted)
    else:
        answer = click.prompt("Apply this plan? Only 'yes' goes on", err=True, default="no", show_default=False)
        agreed = answer.strip().lower() == "yes"
    if not agreed:
        raise RefusedError("not agreed: nothing was sent", remedy="")
