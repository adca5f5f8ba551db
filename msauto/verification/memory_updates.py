"""What the ledger keeps after verification: what the server does not report, and which uid and guid is whose."""

from __future__ import annotations

from collections.abc import Container

from msauto.aspects import ASPECTS
from msauto.model.plan import Expectation, Json, Target
from msauto.model.ports import LiveTarget
from msauto.model.result import Difference
from msauto.verification.read_back import final_expectations

ExpectationKey = tuple[str, str]


def memories(target: Target, live: LiveTarget, doubtful: Container[ExpectationKey] = frozenset()) -> dict[str, Json]:
    """Return the items ``aspect:key`` to keep of what the target's requests have done; ``None`` forgets one.

    Nothing is kept of what is ``doubtful``: what was read differs from it.
    """
    kept: dict[str, Json] = {}
    for request in target.requests:
        if not any(expectation_key(each) in doubtful for each in request.expect):
            for change in (target.changes[number] for number in request.changes):
                kept.update(ASPECTS[change.aspect].forget(change))
    for expect in final_expectations(target):
        aspect = ASPECTS[expect.aspect]
        hidden = expect.secret and aspect.value_items is not None  # its value is not known any more
        if not hidden and expectation_key(expect) not in doubtful:
            kept.update(aspect.remember(expect, live))
    expects = [expect for request in target.requests for expect in request.expect]
    for aspect in ASPECTS.values():
        kept.update(aspect.remember_all(expects, live))
    return kept


def expectation_key(sourced: Expectation | Difference) -> ExpectationKey:
    """Return aspect and key of a thing: what an expectation and a difference from it have in common."""
    return sourced.aspect, sourced.key
