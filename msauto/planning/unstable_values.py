"""Warn of values that change again on every run: ``comment: "{{ asset.comment }}x"`` grows every night.

A template that reads what it sets is suspect. Its task is evaluated again with the asset as it is after the run: what
it declares then must be what it declares now.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from msgspec import structs

from msauto.aspects import ASPECTS, live_after
from msauto.aspects.plan_builder import PlanBuilder
from msauto.errors import MsautoError
from msauto.model.desired import DesiredAsset
from msauto.model.facts import Facts, Need, NoAssetError
from msauto.model.live import Xmp
from msauto.model.plan import Change
from msauto.model.ports import LiveTarget
from msauto.planning.asset_plan import LocatedAsset
from msauto.planning.clip_finder import Declared
from msauto.planning.fact_layers import Layers


def warn_of_repeated_changes(
    declared: Sequence[Declared], layers: Layers, found: LocatedAsset, xmp: Xmp | None, builder: PlanBuilder
) -> None:
    """Add a warning to the builder for each value that the next run would change again."""
    changes = [change for change in builder.changes if layers.looked & {*ASPECTS[change.aspect].facts(change.key)}]
    if not changes:
        return
    asset = structs.replace(found.asset, title=found.asset.title or found.title)
    after = live_after(LiveTarget(asset=asset, xmp=layers.with_xmp(xmp)), builder.requests())
    warnings: list[str] = []
    for member, desired in declared:
        again = None
        with suppress(Need, NoAssetError, MsautoError):
            again = member.intent.evaluate(
                Facts(entry=member.entry, asset=after.asset, xmp=after.xmp, links=layers.links)
            )
        if isinstance(desired, DesiredAsset) and isinstance(again, DesiredAsset) and again.present:
            warnings += _differences(desired, again, changes)
    builder.warnings += [f"{found.title}: {warning}" for warning in dict.fromkeys(warnings)]


def _differences(now: DesiredAsset, then: DesiredAsset, changes: Sequence[Change]) -> Iterator[str]:
    for aspect in dict.fromkeys(change.aspect for change in changes):
        keys = {change.key for change in changes if change.aspect == aspect}
        if aspect not in now.parts or aspect not in then.parts:
            continue
        for key, what, sourced in ASPECTS[aspect].differing(now.parts[aspect], then.parts[aspect]):
            if key in keys or key == aspect:
                yield f"{what} ({sourced.source.place}) reads what it sets: every run changes it again"
