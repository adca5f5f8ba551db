"""Consent: a person, or ``--yes`` within the limits, agrees to a plan before anything is sent."""

from __future__ import annotations

import sys

from msauto.errors import RefusedError
from msauto.model.plan import Plan
from msauto.planning.limits import deletes_asset
from msauto.report.sentences import deletions, refusals_told


def ask(plan: Plan, *, yes: bool) -> None:
    """Return where the plan may be applied; raise :class:`RefusedError` where it may not.

    Limits come first, whatever ``yes`` says. On a terminal, a plan that only deletes more assets than the limit is
    agreed to by typing the number (contract, «Limits»).
    """
    on_terminal = sys.stdin.isatty() and not yes
    refused = [refusal for refusal in plan.refusals if not (on_terminal and refusal.code == "delete_assets")]
    if refused:
        reason, remedy = refusals_told(refused)
        raise RefusedError(reason, remedy=remedy)
    if yes or not plan.requests:
        return
    if not on_terminal:
        raise RefusedError(
            "nobody agreed to the plan: there is no terminal to ask on", remedy="--yes, or run it on a terminal"
        )
    _ask_person(plan)


def _ask_person(plan: Plan) -> None:
    deleted = [change.aspect for target in plan.targets for change in target.changes if deletes_asset(change)]
    if deleted:
        what = deletions(deleted.count("asset"), deleted.count("link"))
        agreed = _answer(f"This deletes {what} for good. Type the number to go on: ") == str(len(deleted))
    else:
        agreed = _answer("Apply this plan? Only 'yes' goes on: ").lower() == "yes"
    if not agreed:
        raise RefusedError("not agreed: nothing was sent")


def _answer(question: str) -> str:
    """Ask on stderr, for stdout carries the result; the end of the input is no answer, and Ctrl-C goes through."""
    sys.stderr.write(question)
    sys.stderr.flush()
    line = sys.stdin.readline()
    if not line.endswith("\n"):
        sys.stderr.write("\n")
    return line.strip()
