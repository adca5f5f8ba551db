"""Which model met which mapping: hints for unknown keys come from it."""

from typing import Annotated

from pydantic import BeforeValidator

from msauto.documents.strict_model import Model, ValidationRecord


class Inner(Model):
    number: int


class Outer(Model):
    inner: list[Annotated[Inner, BeforeValidator(dict)]]


def test_a_mapping_that_only_a_validator_made_is_not_taken_for_another() -> None:
    record = ValidationRecord()
    Outer.model_validate({"inner": [{"number": number} for number in range(50)]}, context=record)
    assert len(record.mappings) == 1 + 50, "each has an identity of its own"
    assert {number for number, (mapping, _) in record.mappings.items() if id(mapping) != number} == set()
