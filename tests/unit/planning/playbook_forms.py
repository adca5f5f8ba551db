"""Wanted state for tests, written as a playbook writes it: the arguments of a module, with places."""

from __future__ import annotations

import json
from typing import Any

from msauto.model.facts import Facts
from msauto.model.wanted import Intent, Wanted
from msauto.playbook.asset_module import asset_ref, asset_wanted
from msauto.playbook.document import Document, Spot
from msauto.playbook.rss_module import rss_ref, rss_wanted
from msauto.playbook.schema import read_as
from msauto.playbook.schema_asset import AssetArgs
from msauto.playbook.yaml import load_yaml


def asset_intent(args: dict[str, Any], *, file: str = "task.yml", separator: str = ",") -> Intent:
    """Return the intent of an ``asset`` task."""
    spot = Spot(_document(args, file))
    wanted = asset_wanted(spot.document.data, spot, file, separator)
    ref = asset_ref(read_as(AssetArgs, spot.document.data, spot), "NEWS", None)

    def evaluate(_: Facts) -> Wanted | None:
        return wanted

    return Intent(ref, wanted.source, evaluate, wanted.missing)


def rss_intent(args: dict[str, Any], *, file: str = "task.yml") -> Intent:
    """Return the intent of an ``rss`` task."""
    spot = Spot(_document(args, file))
    wanted = rss_wanted(spot.document.data, spot, file)

    def evaluate(_: Facts) -> Wanted | None:
        return wanted

    return Intent(rss_ref(args["channel"]), wanted.source, evaluate)


def _document(args: dict[str, Any], file: str) -> Document:
    return load_yaml(json.dumps(args, ensure_ascii=False, indent=1).encode(), file)
