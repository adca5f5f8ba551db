"""The keys of the ``asset`` module: those that name an asset, and the union of what the aspects declare."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from msauto.aspects import ASPECTS
from msauto.aspects.arguments import State, with_keys
from msauto.aspects.aspect import Aspect
from msauto.documents import key_rules as rule
from msauto.documents import value_types as types
from msauto.documents.strict_model import Model, key
from msauto.documents.value_types import Else, Flag, Name, Opt, Plain, Pos, Then, Value
from msauto.model import fields as registry


class ExpectedCount(Model):
    """How many assets a selection may find. Any other number is a planning error."""

    min: Opt[types.Count] = key("minimum number of assets")
    max: Opt[types.Count] = key("maximum number of assets")


_MimeTypes = Annotated[Then[list[Value[registry.MimeType]]] | Else[registry.MimeType], types.IF_LIST]


class SelectArgs(Model):
    """Selects assets of a listing."""

    folder: Opt[types.FolderText] = key(
        "folder to search, such as Raw/2026; an unknown folder is an error; default: the root"
    )
    recursive: Opt[Flag] = key("search subfolders too; default false")
    created_after: Opt[types.When] = key(
        "only assets created after this date or time; without a zone, in the time zone of the server"
    )
    created_before: Opt[types.When] = key(
        "only assets created before this date or time; without a zone, in the time zone of the server"
    )
    created_within: Opt[types.Span] = key("only assets created within this duration before now: 90s, 30m, 2h, 3d")
    mimetype: Opt[_MimeTypes] = key("one or more types of assets")
    where: Plain[types.Expressions] = key("condition on asset, an expression without braces: asset.frames > 250")
    expect: Opt[ExpectedCount] = key("how many assets may be found")


TARGET_NAMES = ("title", "id", "select")
TWO_TARGETS = ("has both {0} and {1}", "name exactly one of title, id and select")
ONE_TARGET = rule.one_of(TARGET_NAMES, TWO_TARGETS, ("does not name an asset", "add title, id or select"))


class TargetKeys(Model):
    """The keys that name an asset."""

    rules: ClassVar[tuple[rule.KeyRule, ...]] = (ONE_TARGET,)

    title: Opt[Name] = key("title of the asset")
    id: Opt[types.KeyId] = key("key field and value, NS:ID, instead of a title")
    select: Opt[SelectArgs] = key("all assets of a listing, instead of a title")


class ExactlyArgs(Model):
    """The lists that are complete: items that they do not name are removed."""


_LISTS = dict(aspect.exactly for aspect in ASPECTS.values() if aspect.exactly is not None)
_LIST_NAMES: Any = Literal[tuple(_LISTS)]
_EXACTLY: Any = Annotated[
    Else[list[Value[_LIST_NAMES]]] | Then[with_keys(ExactlyArgs, _LISTS)],  # type: ignore[misc]
    types.IF_MAP,
]
_KEYS = {name: each for aspect in ASPECTS.values() for name, each in aspect.keys.items()}


class _Named(TargetKeys):
    rules: ClassVar[tuple[rule.KeyRule, ...]] = ()

    was: Opt[types.Texts] = key("former titles: an asset found under one of them is renamed to title")
    folder: Opt[types.FolderText] = key("guard: the home folder of the clip must be this folder")


class AssetArgs(
    with_keys(  # type: ignore[misc]
        _Named,
        {**_KEYS, "exactly": (Opt[_EXACTLY], key("lists that are complete: items that they do not name are removed"))},
    )
):
    """The desired state of an asset. Keys that are not named are not managed; an empty value clears."""

    rules: ClassVar = (
        ONE_TARGET,
        rule.needs("was", ("title",), "was requires title", "name the asset by its new title"),
        *(each for aspect in ASPECTS.values() for each in aspect.rules),
        rule.absent_has_none((*_KEYS, "exactly", "was")),
    )

    origin: Opt[Pos] = key("time code of the first frame of the clip, for all time codes of this task; default 0")
    missing: Opt[Literal["error", "skip"]] = key("how to handle an unknown title; default error")
    unfinalized: Opt[Literal["error", "skip", "allow"]] = key(
        "how to handle a clip that is still being recorded; default error"
    )
    lossy: Opt[Flag] = key("allow changes that lose data that the interface cannot write back")
    state: Opt[State] = key("present (default) or absent: the asset is deleted")
    with_links: Opt[Flag] = key("delete the asset with state: absent even if links show it; default false")


def aspects_of(args: Model) -> list[Aspect]:
    """Return the aspect whose module has these arguments, or all of the module ``asset``."""
    own = [aspect for aspect in ASPECTS.values() if aspect.module is not None and isinstance(args, aspect.module)]
    of_asset = (aspect for aspect in ASPECTS.values() if aspect.module is None)
    return own or [*(of_asset if isinstance(args, AssetArgs) else ())]
