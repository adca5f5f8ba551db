"""Consent: the user, or ``--yes`` within the limits, agrees to a plan before anything is sent."""

from __future__ import annotations

import sys

from msauto.aspects import ASPECTS, is_deletion
from msauto.errors import RefusedError
from msauto.model.plan import Plan
from msauto.report.sentences import count_deletions, refusal_error


def ask(plan: Plan, *, yes: bool) -> None:
    """Return if the plan may be applied; otherwise raise :class:`RefusedError`.

    Limits come first, also with ``yes``. On a terminal, the user agrees to delete more assets than the limit by
    typing their number (contract, «Limits»).
    """
    on_terminal = sys.stdin.isatty() and not yes
    refused = [refusal for refusal in plan.refusals if not (on_terminal and refusal.code == "delete_assets")]
    if refused:
        raise refusal_error(refused)
    if yes or not plan.requests:
        return
    require_terminal()
    deleted = [change for target in plan.targets for change in target.changes if is_deletion(change)]
    if deleted:
        links = sum(ASPECTS[change.aspect].is_entry for change in deleted)
        what = count_deletions(len(deleted) - links, links)
        agreed = prompt(f"This permanently deletes {what}. Type the number to continue: ") == str(len(deleted))
    else:
        agreed = prompt("Apply this plan? Type 'yes' to continue: ").lower() == "yes"
    if not agreed:
        raise RefusedError("no consent: nothing was sent")


def require_terminal() -> None:
    """Raise :class:`RefusedError` if the user cannot be asked."""
    if not sys.stdin.isatty():
        raise RefusedError("no consent: stdin is not a terminal", remedy="use --yes, or run it on a terminal")


def prompt(question: str) -> str:
    """Ask on stderr, because stdout carries the result; the end of the input is an empty answer."""
    sys.stderr.write(question)
    sys.stderr.flush()
    line = sys.stdin.readline()
    if not line.endswith("\n"):
        sys.stderr.write("\n")
    return line.strip()
