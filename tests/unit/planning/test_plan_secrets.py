"""The secrets of a saved plan: which references are refused, and when a value counts as changed."""

from __future__ import annotations

import hashlib

import pytest
from msgspec import structs

from msauto.model.desired import TaskSource
from msauto.model.plan import Change, Plan, Request, Target
from msauto.planning.saved_plans.plan_secrets import PlanConcealer, PlanRevealer, SavedSecret
from msauto.secrets.redaction import Secrets
from msauto.secrets.secret_sources import SecretReference

SALT = "00" * 16
TOKEN = f"***{{{'1' * 32}}}"


def entry(text: str, *sources: SecretReference, token: str = TOKEN) -> SavedSecret:
    digest = hashlib.scrypt(text.encode(), salt=bytes.fromhex(SALT), n=2**14, r=8, p=1, dklen=64)
    return SavedSecret(token, sources, SALT, digest[:32].hex(), "")


def plan_sending(text: str) -> Plan:
    change = Change("change", "field", "comment", "", text, "live", True, TaskSource("play.yml"))
    request = Request("POST", f"/storage/NEWS@A?command=SETFIELD&name=comment&val={text}", (0,))
    target = Target("a", "NEWS", "asset", "A", fingerprint="sha256:0", changes=(change,), requests=(request,))
    return Plan("2026-01-01T00:00:00", "1", targets=(target,))


@pytest.mark.parametrize("again", ["token.txt", "./token.txt", "folder/../token.txt"])
def test_a_source_is_named_once_however_it_is_spelled(again: str) -> None:
    """Otherwise each entry would be another guess at the same value, all in one run."""
    entries = [entry("guess", SecretReference("file", name)) for name in ("token.txt", again)]
    entries[1] = structs.replace(entries[1], token=f"***{{{'2' * 32}}}")
    with pytest.raises(ValueError, match="twice"):
        PlanRevealer.open(entries, lambda _: "guess")


@pytest.mark.parametrize(("text", "is_stale"), [("right-one", False), ("wrong-one", True), ("abc", True)])
def test_only_the_same_text_is_sent_and_none_that_cannot_be_hidden(text: str, is_stale: bool) -> None:
    saved = entry("abc" if text == "abc" else "right-one", SecretReference("env", "A"))
    revealer = PlanRevealer.open([saved], lambda _: text)
    (target,) = revealer.plan(plan_sending(TOKEN)).targets
    assert (target.error is not None) == is_stale
    assert [request.path.endswith("=right-one") for request in target.requests] == [] if is_stale else [True]


def test_all_sources_of_a_text_must_still_have_it() -> None:
    sources = (SecretReference("env", "A"), SecretReference("env", "B"))
    values = {"A": "right-one", "B": "another"}
    revealer = PlanRevealer.open([entry("right-one", *sources)], lambda source: values[source.name])
    (target,) = revealer.plan(plan_sending(TOKEN)).targets
    assert target.error == "stale: changed since the plan was made: the environment variable B"


def test_a_token_is_not_searched_for_secrets() -> None:
    """A short secret of hexadecimal digits could be a part of a token."""
    found = Secrets([*(f"{number:04x}" for number in range(0xA000, 0xA020)), "0123456789abcdef"])
    for text in found.texts:
        found.sources.note(text, SecretReference("env", text.upper()))
    plan = structs.replace(plan_sending("a000 0123456789abcdef a01f".replace(" ", "-")), secrets=found)
    concealer = PlanConcealer(plan.secrets)
    saved = concealer.plan(plan)
    assert len(concealer.saved()) == 3
    revealer = PlanRevealer.open(concealer.saved(), lambda source: source.name.lower())
    (shown,), (real,) = revealer.plan(saved).targets, plan.targets
    assert [each.path for each in shown.requests] == [each.path for each in real.requests]
    assert shown.changes[0].after == real.changes[0].after
