"""Warn of values that change again on every run: ``comment: "{{ asset.comment }}x"`` grows every night.

A template that reads what it sets is suspect. Its task is evaluated again with the asset as it is after the run: what
it declares then must be what it declares now.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from msgspec import structs

from msauto.diffing.comparison import same_list, same_value
from msauto.diffing.plan_builder import PlanBuilder
from msauto.errors import MsautoError
from msauto.model.desired import DesiredAsset, Sourced
from msauto.model.facts import Facts, Need, NoAssetError
from msauto.model.live import Xmp
from msauto.planning.survey.asset_plan import LocatedAsset
from msauto.planning.survey.clip_finder import Declared
from msauto.planning.survey.editorial_warnings import asset_after, xmp_after
from msauto.planning.survey.fact_layers import Layers

T = TypeVar("T")
_LISTS = {"marker": "markers", "segment": "segments"}


def warn_of_repeated_changes(
    declared: Sequence[Declared], layers: Layers, found: LocatedAsset, xmp: Xmp | None, builder: PlanBuilder
) -> None:
    """Add a warning to the builder for each value that the next run would change again."""
    suspects: set[tuple[str, str]] = set()
    for change in builder.changes:
        reads = {f"fact:{_LISTS.get(change.aspect, change.key)}"}
        if change.aspect == "xmp":
            reads = {f"xmp:{change.key}", "fact:xmp"}
        suspects |= {(change.aspect, change.key)} if reads & layers.looked else set()
    if not suspects:
        return
    requests = builder.requests()
    after = structs.replace(asset_after(found.asset, requests), title=found.asset.title or found.title)
    fields = xmp_after(layers.with_xmp(xmp), requests)
    warnings: list[str] = []
    for member, desired in declared:
        again = None
        with suppress(Need, NoAssetError, MsautoError):
            again = member.intent.evaluate(Facts(entry=member.entry, asset=after, xmp=fields, links=layers.links))
        if isinstance(desired, DesiredAsset) and isinstance(again, DesiredAsset) and again.present:
            warnings += _differences(desired, again, suspects)
    builder.warnings += [f"{found.title}: {warning}" for warning in dict.fromkeys(warnings)]


def _differences(now: DesiredAsset, then: DesiredAsset, suspects: Collection[tuple[str, str]]) -> Iterator[str]:
    for name, one, other in _both(now.fields, then.fields):
        if ("field", name) in suspects and not same_value(name, str(one.value), str(other.value)):
            yield _warning(f"the field {name}", one)
    for name, values, others in _both(now.xmp, then.xmp):
        if ("xmp", name) in suspects and not same_list(values.value, others.value):
            yield _warning(f"the XMP field {name}", values)
    for aspect, name in _LISTS.items():
        if any(aspect == suspect for suspect, _ in suspects):
            yield from _list_differences(aspect, getattr(now, name), getattr(then, name))


def _both(
    now: Mapping[str, Sourced[T]], then: Mapping[str, Sourced[T]]
) -> Iterator[tuple[str, Sourced[T], Sourced[T]]]:
    return ((name, sourced, then[name]) for name, sourced in now.items() if name in then)


def _list_differences(aspect: str, now: Sequence[Sourced[Any]], then: Sequence[Sourced[Any]]) -> Iterator[str]:
    items = {sourced.source.place: sourced for sourced in then}
    for sourced in now:
        other = items.get(sourced.source.place)
        if other is not None and other.value != sourced.value:
            yield _warning(f"a {aspect}", sourced)


def _warning(what: str, sourced: Sourced[Any]) -> str:
    return f"{what} ({sourced.source.place}) reads what it sets: every run changes it again"
