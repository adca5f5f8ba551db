"""Which model met which mapping: hints for unknown keys come from it."""

from typing import Annotated, Any

from pydantic import BeforeValidator

from msauto.playbook.schema.strict_model import Model


class Inner(Model):
    number: int


class Outer(Model):
    inner: list[Annotated[Inner, BeforeValidator(dict)]]


def test_a_mapping_that_only_a_validator_made_is_not_taken_for_another() -> None:
    known: dict[str, Any] = {}
    Outer.model_validate({"inner": [{"number": number} for number in range(50)]}, context=known)
    assert len(known["known"]) == 1 + 50, "each has an identity of its own"
    assert {number for number, (mapping, _) in known["known"].items() if id(mapping) != number} == set()
