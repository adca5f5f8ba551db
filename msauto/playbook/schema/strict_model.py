"""The root of the models for what people write: strict, in plain words, and with rules for its keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, ValidationInfo, model_validator
from pydantic_core import CoreSchema

from msauto.playbook.schema.key_rules import BrokenRule, KeyRule
from msauto.playbook.schema.values import sourced


class Model(BaseModel):
    """The root of all models: strict, nothing unknown, and with rules for keys that depend on each other.

    ``context['known']`` learns which model met which mapping, ``context['broken']`` the rules that do not hold; both by
    the ``id`` of the mapping, which lives as long as what is validated. Without a context the first of them is raised.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, populate_by_name=True)
    hints: ClassVar[Mapping[str, tuple[str, str]]] = {}
    """What to say of keys that people may expect here, and that are not: message and remedy."""
    rules: ClassVar[tuple[KeyRule, ...]] = ()
    """Which keys need, exclude or replace each other."""

    @model_validator(mode="before")
    @classmethod
    def _check_rules(cls, data: Any, info: ValidationInfo) -> Any:
        found = list(cls._broken_rules(data)) if isinstance(data, dict) else []
        if isinstance(info.context, dict):
            info.context.setdefault("known", {})[id(data)] = (data, cls)  # kept: its identity stays its own
            info.context.setdefault("broken", {})[id(data)] = found
        elif found:
            raise sourced(found[0].message, found[0].remedy)
        return data

    @classmethod
    def _broken_rules(cls, data: dict[str, Any]) -> Iterator[BrokenRule]:
        """Yield the rules that do not hold; what is missing may be there, misspelt, and is told then alone."""
        names = {info.alias or name for name, info in cls.model_fields.items()}
        misspelt = cls.model_config.get("extra") == "forbid" and not data.keys() <= names
        for rule in cls.rules:
            yield from (each for each in rule.broken(data) if not (each.lacks and misspelt))

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Publish the rules with the keys."""
        found = handler(schema)
        if cls.rules:
            handler.resolve_ref_schema(found)["allOf"] = [rule.schema() for rule in cls.rules]
        return found


def key(description: str, **more: Any) -> Any:
    """Return a field that may be left out."""
    return Field(default=None, description=description, **more)


def need(description: str, **more: Any) -> Any:
    """Return a field that must be there."""
    return Field(description=description, **more)
