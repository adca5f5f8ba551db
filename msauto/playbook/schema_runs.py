"""The keys of the modules that run something, or ask: thumbnail, proxy, command, assert, xmp_batch."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, model_validator

from msauto.playbook.schema_asset import SelectArgs
from msauto.playbook.schema_times import Pos
from msauto.playbook.schema_values import (
    Between,
    Expressions,
    KeyId,
    Model,
    Name,
    Opt,
    Plain,
    Text,
    Value,
    key,
    need,
    said,
)

Command = Literal["PARTNER_EXPORT_VERSION", "PARTNER_COPY_PROGRAM_FIELDS", "PARTNER_MOVE_TO_ASSET"]
_Pixels = Annotated[int, Between(1, 16_384)]  # four times the width of 4K
_FOLLOWS = ("a handler works on the asset whose change called it", "leave it out")
_OF_HANDLERS = {"title": _FOLLOWS, "id": _FOLLOWS, "select": _FOLLOWS}
_ONE_TARGET = ConfigDict(json_schema_extra={"oneOf": [{"required": [name]} for name in ("title", "id", "select")]})


class TargetKeys(Model):
    """Which asset is meant."""

    title: Opt[Name] = key("the asset's title")
    id: Opt[KeyId] = key("a key field and its value, NS:ID, in place of a title")
    select: Opt[SelectArgs] = key("all assets of a listing, in place of a title")

    @model_validator(mode="after")
    def _one_target(self) -> TargetKeys:
        named = [name for name in ("title", "id", "select") if getattr(self, name) is not None]
        if not named and self._needs_target:
            raise said("does not say which asset is meant", "add title, id or select")
        if len(named) > 1:
            raise said(f"says both {named[0]} and {named[1]}", "say one of title, id and select", key=named[1])
        return self

    _needs_target: ClassVar[bool] = True


class ThumbnailOnly(Model):
    """A still image of the asset that called a handler (interface, «PNG thumbnail»)."""

    hints: ClassVar = _OF_HANDLERS

    pos: Opt[Pos] = key("the position: a time code or frames")
    dur: Opt[Pos] = key("the composition's duration, for graphic templates")
    w: Opt[_Pixels] = key("width in pixels; default the original width")
    h: Opt[_Pixels] = key("height in pixels; default the original height")
    params: Opt[dict[str, Value[Text]]] = key("values for the elements of a graphic template")
    dest: Value[Name] = need("the file to write, beside the playbook")


class ThumbnailArgs(TargetKeys, ThumbnailOnly):
    """A still image of an asset (interface, «PNG thumbnail»)."""

    model_config = _ONE_TARGET
    hints: ClassVar = {}


class ProxyOnly(Model):
    """A viewing copy of the asset that called a handler (interface, «Web proxy»)."""

    hints: ClassVar = _OF_HANDLERS

    profile: Value[Literal["WP1", "WP2", "WP3", "WP4", "WP5", "WP6", "WP7", "WP8"]] = need("the web profile")
    dest: Value[Name] = need("the file to write, beside the playbook")


class ProxyArgs(TargetKeys, ProxyOnly):
    """A viewing copy of an asset (interface, «Web proxy»)."""

    model_config = _ONE_TARGET
    hints: ClassVar = {}


class CommandOnly(Model):
    """A command on the asset that called a handler (interface, «Asset commands»)."""

    hints: ClassVar = _OF_HANDLERS

    name: Value[Command] = need("the command")
    params: Opt[dict[str, Value[Text]]] = key("parameters of the command; ns and id follow the asset's address")
    run: Opt[Literal["always", "once", "changed"]] = key(
        "always (default), once in the life of the asset, or changed: where this run changes the asset"
    )

    @model_validator(mode="after")
    def _parameters(self) -> CommandOnly:
        params = self.params if isinstance(self.params, dict) else {}
        for name in ("ns", "id", "command"):
            if name in params:
                remedy = 'address the asset by its key: id: "handle:4711"' if name != "command" else "say it as name"
                raise said(f"{name} is no parameter here: it follows from the task", remedy, key="params")
        if self.name == "PARTNER_MOVE_TO_ASSET" and self.params is None:
            raise said("PARTNER_MOVE_TO_ASSET needs the program card", "add params: {asset_id: ...}", key="name")
        if self.name == "PARTNER_MOVE_TO_ASSET" and isinstance(self.params, dict) and "asset_id" not in params:
            raise said("PARTNER_MOVE_TO_ASSET needs the program card", "add asset_id to params", key="params")
        return self


class CommandArgs(TargetKeys, CommandOnly):
    """A command that is run rather than compared (interface, «Asset commands»)."""

    model_config = _ONE_TARGET
    hints: ClassVar = {}


class AssertArgs(TargetKeys):
    """Conditions that must hold, or the plan is refused. Without an asset they are about variables alone."""

    that: Plain[Expressions] = need("expressions, without braces, that must all hold")
    msg: Opt[Text] = key("what to say where one does not")

    _needs_target: ClassVar[bool] = False


class XmpBatchArgs(Model):
    """XMP metadata loaded through a connector (interface, «Load XMP metadata in batch»)."""

    connector: Value[Name] = need("the metadata connector's name")
    src: Value[Name] = need("the file to load, beside the playbook; its content is loaded once")
