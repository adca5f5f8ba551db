"""A refusal shows what would happen, how much of it, and what allows it."""

from __future__ import annotations

import pytest

from msauto.model.plan import Refusal
from msauto.report.texts import refusal_error, refusal_sentence

DELETE = Refusal("delete_assets", 0, 2, "--allow-delete 2")
MASTER = Refusal(
    "protected",
    "Master/*",
    "studio-a NEWS Film",
    "take the task out, or 'Master/*' out of `protected` in msauto.toml",
)


SENTENCES = {
    DELETE: "the plan deletes 2 assets; the limit is 0. To allow it: --allow-delete 2",
    Refusal("delete_assets", 3, 4, "--allow-delete 4", 1): (
        "the plan deletes 3 assets and 1 link; the limit is 3. To allow it: --allow-delete 4"
    ),
    Refusal("remove_items", 50, 51, "--allow-remove 51"): (
        "the plan loses 51 list items that no task names by key; the limit is 50. To allow it: --allow-remove 51"
    ),
    Refusal("empty_list", 2, 11, "--allow-remove 12"): (
        "the plan empties a list of 11 items by `exactly`; the limit is 2 items. To allow it: --allow-remove 12"
    ),
    Refusal("requests", 1, 120, "--allow-requests 120"): (
        "the plan sends 120 requests; the limit is 1. To allow it: --allow-requests 120"
    ),
    MASTER: (
        "studio-a NEWS Film is protected by 'Master/*': nothing there may be deleted, removed or overwritten. "
        "No flag allows it: take the task out, or 'Master/*' out of `protected` in msauto.toml"
    ),
    Refusal("later_kind", "x", "y", ""): "later kind: y; the limit is x.",
}


@pytest.mark.parametrize(
    ("refusal", "sentence"), SENTENCES.items(), ids=[each.code for each in SENTENCES]
)
def test_a_refusal_is_a_sentence(refusal: Refusal, sentence: str) -> None:
    assert refusal_sentence(refusal) == f"Refused: {sentence}"


def test_the_error_repeats_the_reasons_and_gives_the_flags_as_they_are_typed() -> None:
    error = refusal_error([DELETE, Refusal("requests", 1, 9, "--allow-requests 9"), MASTER])
    assert error.message.startswith("the plan deletes 2 assets; the limit is 0; the plan sends")
    assert error.message.endswith(": nothing was sent")
    assert error.remedy == f"{MASTER.remedy}; then --allow-delete 2 --allow-requests 9"


def test_a_hundred_refusals_do_not_drown_the_error() -> None:
    error = refusal_error([MASTER] * 100)
    assert error.message.count("is protected") == 3
    assert "; 97 more, shown with the plan: nothing was sent" in error.message
    assert error.remedy == MASTER.remedy


def test_signs_that_a_terminal_obeys_are_shown() -> None:
    error = refusal_error([Refusal("protected", "a\x1b[2J", "b\x1b[2J", "c\x1b[2J")])
    assert "\x1b" not in error.message + error.remedy
