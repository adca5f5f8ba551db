"""Desired state for tests, written as a playbook writes it: the arguments of a module, with places."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from msauto.aspects import ASPECTS
from msauto.aspects.arguments import TaskArguments
from msauto.aspects.rss_arguments import RssArgs
from msauto.documents.document import Document, SourceNode
from msauto.documents.loader import load_yaml
from msauto.documents.strict_model import Model
from msauto.errors import InputError
from msauto.model.desired import (
    ChannelRef,
    DatabaseRef,
    Desired,
    DesiredXmpBatch,
    Intent,
    TaskSource,
)
from msauto.model.facts import Facts
from msauto.model.server import Dialect
from msauto.playbook.input_files import Files, LookupContext
from msauto.playbook.intents import asset_ref, desired_of
from msauto.playbook.plays import check_arguments
from msauto.playbook.schema.play import AssetArgs, CommandArgs, ProxyArgs, TargetKeys, ThumbnailArgs
from msauto.playbook.schema.schema_errors import read_as

_OPERATIONS: dict[str, type[TargetKeys]] = {
    "command": CommandArgs,
    "thumbnail": ThumbnailArgs,
    "proxy": ProxyArgs,
}


def asset_intent(args: dict[str, Any], *, file: str = "task.yml", separator: str = ",") -> Intent:
    """Return the intent of an ``asset`` task."""
    node = SourceNode(_document(args, file))
    checked = read_as(AssetArgs, node.document.data, node)
    dialect = Dialect(list_separator=separator)
    problems = [*check_arguments(checked, node)]
    for aspect in ASPECTS.values():
        problems += aspect.check_for(checked, node, dialect)
    if problems:
        raise InputError(problems)
    desired, ref = _desired(checked, node, file), asset_ref(checked, "NEWS", None)

    def evaluate(_: Facts) -> Desired | None:
        return desired

    return Intent(ref, desired.source, evaluate, checked.missing or "error")


def run_intent(module: str, args: dict[str, Any], *, file: str = "task.yml") -> Intent:
    """Return the intent of a ``command``, ``thumbnail``, ``proxy`` or ``xmp_batch`` task, whose file is ``content``."""
    node = SourceNode(
        _document({name: value for name, value in args.items() if name != "content"}, file)
    )
    source = TaskSource.at(node.place, file)
    if module == "xmp_batch":
        batch = DesiredXmpBatch(source, args["connector"], args["src"], args["content"].encode())
        return Intent(DatabaseRef("NEWS"), source, lambda _: batch)
    checked = read_as(_OPERATIONS[module], node.document.data, node)
    desired = _desired(checked, node, file)
    return Intent(asset_ref(checked, "NEWS", None), source, lambda _: desired)


def rss_intent(args: dict[str, Any], *, file: str = "task.yml") -> Intent:
    """Return the intent of an ``rss`` task."""
    node = SourceNode(_document(args, file))
    checked = read_as(RssArgs, node.document.data, node)
    if problems := list(check_arguments(checked, node)):
        raise InputError(problems)
    desired = _desired(checked, node, file)

    def evaluate(_: Facts) -> Desired | None:
        return desired

    return Intent(ChannelRef(checked.channel), desired.source, evaluate)


def _document(args: dict[str, Any], file: str) -> Document:
    return load_yaml(json.dumps(args, ensure_ascii=False, indent=1).encode(), file)


def _desired(args: Model, node: SourceNode, file: str) -> Desired:
    return desired_of(TaskArguments(args, node, file, LookupContext({}, Files(), Path(), Path())))
