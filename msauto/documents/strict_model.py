"""The root of the models of input files: strict, and with rules for keys that depend on each other."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar, Generic, Self, TypeVar

from msgspec import Struct
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    RootModel,
    ValidationInfo,
    model_validator,
)
from pydantic import ModelWrapValidatorHandler as Handler
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema

from msauto.documents.key_rules import BrokenRule, KeyRule, broken_rules


class ValidationRecord(Struct, frozen=True):
    """What validation finds out about each mapping, by the ``id`` of the mapping.

    ``mappings`` holds each mapping and the class of its model, so that no identity is used twice. ``broken`` holds
    the rules for keys that do not hold; ``models`` the models of mappings whose values are all valid.
    """

    mappings: dict[int, tuple[Any, type[Model]]] = {}
    broken: dict[int, list[BrokenRule]] = {}
    models: dict[int, Model] = {}


T = TypeVar("T")


class DocumentModel(RootModel[T], Generic[T]):
    """The root of the models of whole files: a list, or a mapping with names of the user."""

    model_config = ConfigDict(defer_build=True)


class Model(BaseModel):
    """The root of all models: strict, without unknown keys, and with rules for keys that depend on each other.

    Validate with a :class:`ValidationRecord` as the context: it takes the rules that do not hold. Validators are built
    (``defer_build``) when the first data is wrong, because building takes half of the time of a small plan. Modules of
    models do not postpone annotations (``from __future__``): pydantic would compile each of them from its text.
    """

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, populate_by_name=True, defer_build=True
    )
    hints: ClassVar[Mapping[str, tuple[str, str]]] = {}
    """Message and remedy for unknown keys that users of Ansible may expect."""
    shorthand: ClassVar[str] = ""
    """The key whose value users write in place of the mapping, for the message: ``server: http://host``."""
    rules: ClassVar[tuple[KeyRule, ...]] = ()
    """Which keys need, exclude or replace each other."""

    @model_validator(mode="wrap")
    @classmethod
    def _record(cls, data: Any, handler: Handler[Self], info: ValidationInfo) -> Self:
        record = info.context
        if not isinstance(record, ValidationRecord) or not isinstance(data, dict):
            return handler(data)
        record.mappings[id(data)] = (data, cls)
        broken = list(broken_rules(cls.rules, data)) if cls.rules else []
        if broken and not data.keys() <= fields_of(cls).keys():
            # A missing key is not reported beside an unknown one.
            broken = [broken_rule for broken_rule in broken if not broken_rule.lacks]
        if broken:
            record.broken[id(data)] = broken
        model = record.models[id(data)] = handler(data)
        return model

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Return the JSON Schema with the rules for keys."""
        json_schema = handler(schema)
        if cls.rules:
            handler.resolve_ref_schema(json_schema)["allOf"] = [rule.schema for rule in cls.rules]
        return json_schema


@cache
def fields_of(model: type[BaseModel]) -> Mapping[str, FieldInfo]:
    """Return the fields of a model by their keys, as they are written."""
    return {info.alias or name: info for name, info in model.model_fields.items()}


def key(description: str, **more: Any) -> Any:
    """Return an optional field."""
    return Field(default=None, description=description, **more)


def need(description: str, **more: Any) -> Any:
    """Return a required field."""
    return Field(description=description, **more)


VARIABLES = {"holds_variables": True}
"""Marks a field whose mapping holds variables, for the JSON Schema."""
