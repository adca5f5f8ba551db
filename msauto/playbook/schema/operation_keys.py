"""The keys of the modules thumbnail, proxy, command, assert and xmp_batch."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, ClassVar, Literal

from msauto.documents import key_rules as rule
from msauto.documents.strict_model import Model, key, need
from msauto.documents.value_types import Expressions, Name, Opt, Plain, Pos, Text, Value, between
from msauto.playbook.schema.asset import ONE_TARGET, TARGET_NAMES, TWO_TARGETS, TargetKeys

Command = Literal["PARTNER_EXPORT_VERSION", "PARTNER_COPY_PROGRAM_FIELDS", "PARTNER_MOVE_TO_ASSET"]
_Pixels = Annotated[int, between(1, 16_384)]  # four times the width of 4K
_FOLLOWS = ("a handler runs on the asset that changed", "remove it")
_OF_HANDLERS = {"title": _FOLLOWS, "id": _FOLLOWS, "select": _FOLLOWS}


class RunTarget(TargetKeys):
    """The keys that name an asset, and how to handle a missing one."""

    missing: Opt[Literal["error", "skip"]] = key("how to handle an unknown title; default error")


class ThumbnailOnly(Model):
    """A still image of the asset that changed (interface, «PNG thumbnail»)."""

    hints: ClassVar = _OF_HANDLERS

    pos: Opt[Pos] = key("position of the image: a time code or frames")
    dur: Opt[Pos] = key("duration of the composition, for graphic templates")
    w: Opt[_Pixels] = key("width in pixels; default: the original width")
    h: Opt[_Pixels] = key("height in pixels; default: the original height")
    params: Opt[dict[str, Value[Text]]] = key("values for the elements of a graphic template")
    dest: Value[Name] = need("file to write, relative to the playbook")


class ThumbnailArgs(RunTarget, ThumbnailOnly):
    """A still image of an asset (interface, «PNG thumbnail»)."""

    hints: ClassVar = {}


class ProxyOnly(Model):
    """A viewing copy of the asset that changed (interface, «Web proxy»)."""

    hints: ClassVar = _OF_HANDLERS

    profile: Value[Literal["WP1", "WP2", "WP3", "WP4", "WP5", "WP6", "WP7", "WP8"]] = need("web profile")
    dest: Value[Name] = need("file to write, relative to the playbook")


class ProxyArgs(RunTarget, ProxyOnly):
    """A viewing copy of an asset (interface, «Web proxy»)."""

    hints: ClassVar = {}


_PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "PARTNER_EXPORT_VERSION": (),
    "PARTNER_COPY_PROGRAM_FIELDS": (),
    "PARTNER_MOVE_TO_ASSET": ("asset_id", "house_number"),
}
"""The parameters of each command (interface, «Asset commands»), except ns and id."""
_FROM_THE_TASK = ("ns", "id", "command")
_CARD = "PARTNER_MOVE_TO_ASSET requires the program card"


def _no_parameter(command: str, name: str) -> tuple[str, str]:
    known = _PARAMETERS[command]
    if name in _FROM_THE_TASK:
        remedy = (
            "set the command with the key name"
            if name == "command"
            else 'address the asset by its key: id: "handle:4711"'
        )
        return f"{name} cannot be set here: it follows from the task", remedy
    remedy = f"its parameters are {' and '.join(known)}" if known else "it takes ns and id, which follow from the task"
    return f"{command} has no parameter {name!r}", remedy


_COMMAND_RULES: tuple[rule.KeyRule, ...] = (
    *(
        rule.when_value("name", name, rule.only("params", known, partial(_no_parameter, name)))
        for name, known in _PARAMETERS.items()
    ),
    rule.when_value(
        "name",
        "PARTNER_MOVE_TO_ASSET",
        rule.needs("name", ("params",), _CARD, "add params: {asset_id: ...}"),
        rule.inside("params", rule.any_of((("asset_id",),), _CARD, "add asset_id to params")),
    ),
)


class CommandOnly(Model):
    """A command on the asset that changed (interface, «Asset commands»)."""

    hints: ClassVar = _OF_HANDLERS
    rules: ClassVar = _COMMAND_RULES

    name: Value[Command] = need("name of the command")
    params: Opt[dict[str, Value[Text]]] = key(
        "parameters of the command; ns and id are set from the address of the asset"
    )
    run: Opt[Literal["always", "once", "changed"]] = key(
        "always (default); once: once per asset; changed: if this run changes the asset"
    )


class CommandArgs(RunTarget, CommandOnly):
    """A command that is run, not compared (interface, «Asset commands»)."""

    hints: ClassVar = {}
    rules: ClassVar = (ONE_TARGET, *_COMMAND_RULES)


class AssertArgs(TargetKeys):
    """Conditions that must be true, or planning fails. Without an asset, they use only variables."""

    rules: ClassVar = (rule.one_of(TARGET_NAMES, TWO_TARGETS),)

    that: Plain[Expressions] = need("expressions without braces; all must be true")
    msg: Opt[Text] = key("message if a condition is false")


class XmpBatchArgs(Model):
    """XMP metadata to load through a connector (interface, «Load XMP metadata in batch»)."""

    connector: Value[Name] = need("name of the metadata connector")
    src: Value[Name] = need("file to load, relative to the playbook; the same content is loaded only once")
