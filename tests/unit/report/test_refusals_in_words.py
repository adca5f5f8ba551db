"""What is refused, said so that a media engineer knows what would happen, how much of it, and what allows it."""

from __future__ import annotations

import pytest

from msauto.model.plan import Refusal
from msauto.report.sentences import refusal_sentence, refusals_told

DELETE = Refusal("delete_assets", 0, 2, "--allow-delete 2")
MASTER = Refusal(
    "protected", "Master/*", "studio-a NEWS Film", "take the task out, or 'Master/*' out of `protected` in msauto.toml"
)


SENTENCES = {
    DELETE: "the plan deletes 2 assets, and none may be deleted unless it is allowed. To allow it: --allow-delete 2",
    Refusal("delete_assets", 3, 4, "--allow-delete 4"): (
        "the plan deletes 4 assets, and no more than 3 may be deleted unless it is allowed. "
        "To allow it: --allow-delete 4"
    ),
    Refusal("remove_items", 50, 51, "--allow-remove 51"): (
        "the plan removes 51 list items that `exactly` does not name, and no more than 50 may be removed "
        "unless it is allowed. To allow it: --allow-remove 51"
    ),
    Refusal("empty_list", 2, 11, "--allow-remove 12"): (
        "by `exactly`, the plan empties a list of 11, and a list of 3 or more may not be emptied "
        "unless it is allowed. To allow it: --allow-remove 12"
    ),
    Refusal("requests", 1, 120, "--allow-requests 120"): (
        "the plan sends 120 requests, and no more than 1 may be sent unless it is allowed. "
        "To allow it: --allow-requests 120"
    ),
    MASTER: (
        "studio-a NEWS Film is protected by 'Master/*': nothing may be deleted there, or removed from it. "
        "No flag allows it: take the task out, or 'Master/*' out of `protected` in msauto.toml"
    ),
    Refusal("later_kind", "x", "y", ""): "later kind: y, the limit is x.",
}


@pytest.mark.parametrize(("refusal", "sentence"), SENTENCES.items(), ids=[each.code for each in SENTENCES])
def test_a_refusal_is_a_sentence(refusal: Refusal, sentence: str) -> None:
    assert refusal_sentence(refusal) == f"Refused: {sentence}"


def test_the_error_says_it_again_and_gives_the_flags_as_they_are_typed() -> None:
    message, remedy = refusals_told([DELETE, Refusal("requests", 1, 9, "--allow-requests 9"), MASTER])
    assert message.startswith("the plan deletes 2 assets, and none may be deleted unless it is allowed; the plan sends")
    assert message.endswith(": nothing was sent")
    assert remedy == f"--allow-delete 2 --allow-requests 9; {MASTER.remedy}"


def test_a_hundred_refusals_do_not_drown_the_error() -> None:
    message, remedy = refusals_told([MASTER] * 100)
    assert message.count("is protected") == 3
    assert "; 97 more, told with the plan: nothing was sent" in message
    assert remedy == MASTER.remedy


def test_signs_that_a_terminal_obeys_are_shown() -> None:
    message, remedy = refusals_told([Refusal("protected", "a\x1b[2J", "b\x1b[2J", "c\x1b[2J")])
    assert "\x1b" not in message + remedy
