"""The way without pydantic takes only data that it can judge whole."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from annotated_types import MinLen
from pydantic import AfterValidator, field_validator, model_validator

from msauto.playbook.schema.strict_model import Model, need
from msauto.playbook.schema.valid_data import NotTakenError, Parts, model_of
from msauto.playbook.schema.value_types import Name, Plain


def _refuse_empty(days: list[str]) -> list[str]:
    if not days:
        raise ValueError("no day")
    return days


class _ConstrainedList(Model):
    days: Annotated[list[Name], MinLen(1)] = need("days")


class _CheckedList(Model):
    days: Plain[Annotated[list[Name], AfterValidator(_refuse_empty)]] = need("days")


class _CheckedField(Model):
    days: list[Name] = need("days")

    @field_validator("days")
    @classmethod
    def _days(cls, days: list[str]) -> list[str]:
        return _refuse_empty(days)


class _CheckedBefore(Model):
    days: list[Name] = need("days")

    @model_validator(mode="before")
    @classmethod
    def _before(cls, data: Any) -> Any:
        _refuse_empty(data["days"])
        return data


@pytest.mark.parametrize("model", [_ConstrainedList, _CheckedList, _CheckedField, _CheckedBefore])
@pytest.mark.parametrize("days", [[], ["mon"]])
def test_a_constraint_that_only_pydantic_knows_is_left_to_it(model: type[Model], days: list[str]) -> None:
    with pytest.raises(NotTakenError):
        model_of(model, {"days": days}, Parts())


class _PlainList(Model):
    days: list[Name] = need("days")


def test_a_list_without_constraints_is_taken() -> None:
    assert model_of(_PlainList, {"days": ["mon"]}, Parts()).days == ["mon"]
