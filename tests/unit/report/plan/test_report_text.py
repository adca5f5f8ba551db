"""The plan as text."""

from __future__ import annotations

import re

import pytest
from msgspec import structs

from msauto.model.plan import Plan, Refusal, Request, SkippedTarget, Target
from tests.unit.report.made_plans import (
    change,
    check_golden,
    episode,
    film,
    lost,
    plan_of,
    text_of,
    ticker,
    whole_plan,
)

SKIPPED = SkippedTarget("studio-a", "NEWS", "asset", "Film", "missing")


@pytest.mark.parametrize("verbosity", [0, 1, 2])
def test_plan_reads_as_agreed(verbosity: int) -> None:
    check_golden(f"plan-v{verbosity}.txt", text_of(whole_plan(), verbosity=verbosity))


def test_coloured_plan_reads_as_agreed() -> None:
    check_golden("plan-colour.txt", text_of(whole_plan(), colour=True))


def test_plan_of_one_server_has_no_server_header() -> None:
    text = text_of(plan_of(episode(), ticker(), unchanged=3))
    assert "━━" not in text
    assert text.startswith("studio-a · NEWS · Evening News  in Raw/2026\n")


def last_line(plan: Plan, **more: bool) -> str:
    return text_of(plan, width=200, **more).splitlines()[-1]


def bare(action: str, requests: int = 1) -> Target:
    return Target(
        "s",
        "NEWS",
        "asset",
        "A",
        changes=(change(action, "field", "comment", "a", "b"),),  # type: ignore[arg-type]
        requests=(Request("POST", "/storage/NEWS@A?command=X", (0,)),) * requests,
    )


@pytest.mark.parametrize(
    ("plan", "sentence"),
    [
        (plan_of(unchanged=12), "No changes. 12 targets are as desired."),
        (
            plan_of(unchanged=1, skipped=(SKIPPED, SKIPPED)),
            "No changes. 1 target is as desired. 2 skipped (2 missing).",
        ),
        (plan_of(), "No changes. Nothing was compared."),
        (
            plan_of(bare("add")),
            "Plan: 1 to add, 0 to change, 0 to delete, 0 to run, on 1 asset; 1 request.",
        ),
        (
            plan_of(bare("change", 2), bare("run"), unchanged=12, skipped=(SKIPPED,)),
            (
                "Plan: 0 to add, 1 to change, 0 to delete, 1 to run, on 2 assets; 3 requests. "
                "12 unchanged. 1 skipped (1 missing)."
            ),
        ),
        (
            plan_of(bare("change"), ticker()),
            "Plan: 0 to add, 2 to change, 1 to delete, 0 to run, on 1 asset and 1 channel; 4 requests.",
        ),
        (
            plan_of(lost()),
            (
                "Plan: 0 to add, 0 to change, 0 to delete, 0 to run; 0 requests. "
                "1 target in error: nothing can be applied."
            ),
        ),
        (
            plan_of(
                bare("change"),
                ticker(),
                Target("s", "", "database", "NEWS", changes=ticker().changes),
            ),
            "Plan: 0 to add, 3 to change, 2 to delete, 0 to run, on 1 asset, 1 channel and 1 database; 4 requests.",
        ),
    ],
)
def test_closing_sentence(plan: Plan, sentence: str) -> None:
    assert last_line(plan) == sentence


def test_errors_that_are_left_out_are_not_in_the_way() -> None:
    assert last_line(plan_of(lost(), lost()), keep_going=True).endswith(
        "2 targets in error: left out."
    )


def test_refusal_names_what_allows_it() -> None:
    plan = plan_of(film(), refusals=(Refusal("delete_assets", 0, 2, "--allow-delete 2"),))
    text = text_of(plan, width=120)
    reason = "the plan deletes 2 assets; the limit is 0. To allow it: --allow-delete 2"
    assert f"Refused: {reason}\n" in text


@pytest.mark.parametrize(
    ("length", "verbosity", "whole"), [(150, 0, True), (300, 0, False), (300, 1, True)]
)
def test_a_value_is_cut_only_where_it_has_no_room(length: int, verbosity: int, whole: bool) -> None:
    long = "x" * length
    targets = [structs.replace(episode(), changes=(change("add", "field", "comment", None, f"{n * 7}{long}"),))
               for n in range(41)]  # fmt: skip
    assert (
        f"7{long}" in re.sub(r"\n +", "", text_of(plan_of(*targets), verbosity=verbosity))
    ) is whole
    assert f"7{long}" in re.sub(r"\n +", "", text_of(plan_of(*targets[:40]), verbosity=verbosity))


def test_deletions_are_just_above_the_closing_sentence() -> None:
    lines = text_of(plan_of(film(), episode()), width=200, colour=True).splitlines()
    assert lines[-4:-1] == [
        "\x1b[31m1 asset is deleted; this cannot be undone:\x1b[0m",
        (
            "\x1b[31m  - studio-b · ARCHIVE · Promo 1  in Promos, length 00:01:00:00 / 00:01:00;02 (1800), "
            "created 2026-11-12T10:00:00, also shown as Playout/Tonight/Promo 1\x1b[0m"
        ),
        "",
    ]


def test_a_title_cannot_write_to_the_terminal() -> None:
    hostile = structs.replace(film(), name="x\x1b[2J\u202egpj.\u200b\x9b31m", folder="a\nb")
    line = text_of(plan_of(hostile), width=200).splitlines()[1]
    assert line.startswith(r'  - studio-b · ARCHIVE · "x\x1b[2J\u202egpj.\u200b\x9b31m"  in ')


def test_one_error_of_several_servers_names_all_of_them() -> None:
    text = text_of(
        plan_of(
            *(structs.replace(episode(), server=name, error="no connection") for name in ("a", "b"))
        )
    )
    assert text.startswith("a, b · NEWS · 2 assets\n    Evening News\n  error: no connection\n")


def test_one_cause_on_several_servers_is_one_entry() -> None:
    errors = []
    warnings = []
    for server in ("oslo", "bergen", "tromso"):
        for name in ("PROMO 1", "PROMO 7"):
            error = f"play.yml:6:14: server {server}, database NEWS: asset '{name}' not found"
            errors.append(structs.replace(episode(), server=server, name=name, error=error))
            warnings.append(f"{server}: {name}: recorded again")
    text = text_of(plan_of(*errors, warnings=tuple(warnings)), width=80)
    assert text.startswith(
        "oslo, bergen, tromso · NEWS · 6 assets\n    PROMO 1, PROMO 7\n"
        "  error: play.yml:6:14: asset '<title>' not found\n"
    )
    assert "Warning: oslo, bergen, tromso: recorded again\n    PROMO 1, PROMO 7\n" in text
    text = text_of(plan_of(*errors[::2], warnings=tuple(warnings[:-1])), width=80)
    assert "  error: play.yml:6:14: asset 'PROMO 1' not found\n" in text
    assert "Warning: recorded again\n    oslo, bergen: PROMO 1, PROMO 7; tromso: PROMO 1\n" in text
