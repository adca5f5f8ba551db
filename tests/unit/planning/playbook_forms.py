"""Wanted state for tests, written as a playbook writes it: the arguments of a module, with places."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from msauto.model.desired import DatabaseRef, Desired, DesiredXmpBatch, Intent, TaskSource
from msauto.model.facts import Facts
from msauto.playbook.files import Files
from msauto.playbook.schema.asset import AssetArgs
from msauto.playbook.schema.validation import read_as
from msauto.playbook.tasks.asset_module import asset_ref, desired_asset, ref_of
from msauto.playbook.tasks.operation_modules import run_wanted
from msauto.playbook.tasks.rss_module import rss_ref, rss_wanted
from msauto.playbook.templates.lookups import LookupContext
from msauto.playbook.yaml.document import Document, SourceNode
from msauto.playbook.yaml.loader import load_yaml


def asset_intent(args: dict[str, Any], *, file: str = "task.yml", separator: str = ",") -> Intent:
    """Return the intent of an ``asset`` task."""
    node = SourceNode(_document(args, file))
    desired = desired_asset(node.document.data, node, file, separator)
    ref = asset_ref(read_as(AssetArgs, node.document.data, node), "NEWS", None)

    def evaluate(_: Facts) -> Desired | None:
        return desired

    return Intent(ref, desired.source, evaluate, desired.missing)


def run_intent(module: str, args: dict[str, Any], *, file: str = "task.yml") -> Intent:
    """Return the intent of a ``command``, ``thumbnail``, ``proxy`` or ``xmp_batch`` task, whose file is ``content``."""
    node = SourceNode(_document({name: value for name, value in args.items() if name != "content"}, file))
    source = TaskSource.at(node.place, file)
    if module == "xmp_batch":
        batch = DesiredXmpBatch(source, args["connector"], args["src"], args["content"].encode())
        return Intent(DatabaseRef("NEWS"), source, lambda _: batch)
    around = LookupContext({}, Files(), Path(), Path())
    desired = run_wanted(module, node.document.data, node, file, around)
    return Intent(ref_of(args.get("title"), args.get("id"), None, "NEWS", None), source, lambda _: desired)


def rss_intent(args: dict[str, Any], *, file: str = "task.yml") -> Intent:
    """Return the intent of an ``rss`` task."""
    node = SourceNode(_document(args, file))
    desired = rss_wanted(node.document.data, node, file)

    def evaluate(_: Facts) -> Desired | None:
        return desired

    return Intent(rss_ref(args["channel"]), desired.source, evaluate)


def _document(args: dict[str, Any], file: str) -> Document:
    return load_yaml(json.dumps(args, ensure_ascii=False, indent=1).encode(), file)
