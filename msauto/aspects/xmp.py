"""XMP fields: all that differ in one SETUSERFIELDS, split only at the cap of the request line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msauto.diffing.builder import PlanBuilder, PlanContext, left_alone, refuse
from msauto.diffing.comparison import same_list
from msauto.diffing.order import Phase
from msauto.interface import requests, versions
from msauto.model.desired import Sourced
from msauto.model.plan import Basis, Expectation, Json, Request

Changed = tuple[str, Sourced[tuple[str, ...]], int]


def plan_xmp(scene: PlanContext, wanted: Mapping[str, Sourced[tuple[str, ...]]], draft: PlanBuilder) -> None:
    """Write the XMP fields that are not as wanted."""
    check_separator(wanted, scene.server.dialect.list_separator)
    changed: list[Changed] = []
    for name, said in wanted.items():
        before, basis = _known(scene, name)
        if scene.batch is None:
            draft.look(f"xmp:{name}")
        if basis != "none" and same_list(before, said.value):
            continue
        shown: Json = list(before) if basis != "none" else None
        still = scene.still.get(f"xmp:{name}", shown)
        if basis != "none" and isinstance(still, list) and not same_list(before, [str(value) for value in still]):
            draft.warnings.append(left_alone(f"{scene.title}: {name}", shown, still))
            continue
        after: Json = list(said.value)
        number = draft.change("change", "xmp", name, before=shown, after=after, source=said.source, basis=basis)
        changed.append((name, said, number))
    if changed:
        versions.require(scene.server, versions.Feature.SET_USER_FIELDS)
    for group in _split(scene, changed):
        _send(scene, group, draft)


def check_separator(wanted: Mapping[str, Sourced[tuple[str, ...]]], separator: str) -> None:
    """Refuse a value that holds the separator of lists: the server would read it as several values."""
    for name, said in wanted.items():
        for value in said.value:
            if separator in value:
                raise refuse(
                    f"the value {value!r} of {name} holds {separator!r}, which separates values on this server",
                    said.source,
                    "leave the sign out, or set `list_separator` in the server's dialect if it separates otherwise",
                )


def _known(scene: PlanContext, name: str) -> tuple[Sequence[str], Basis]:
    if scene.batch is not None:
        return (), "none"  # what the batch leaves is not known: sent whatever is there now
    if scene.live.xmp is not None:
        return scene.live.xmp.get(name, ()), "live"  # asked for and not in the answer: empty
    remembered = scene.memory.get(f"xmp:{name}")
    return ([str(value) for value in remembered], "ledger") if isinstance(remembered, list) else ((), "none")


def _split(scene: PlanContext, changed: Sequence[Changed]) -> Iterator[list[Changed]]:
    group: list[Changed] = []
    for item in changed:
        if group and _length(scene, [*group, item]) > scene.server.request_line:
            yield group
            group = []
        group.append(item)
    if group:
        yield group


def _length(scene: PlanContext, group: Sequence[Changed]) -> int:
    return requests.request_line_length(_request(scene, group))


def _request(scene: PlanContext, group: Sequence[Changed]) -> Request:
    values = {name: said.value for name, said, _ in group}
    return requests.set_user_fields(scene.path, values, scene.server.dialect.list_separator)


def _send(scene: PlanContext, group: Sequence[Changed], draft: PlanBuilder) -> None:
    visible = scene.live.xmp is not None or scene.batch is not None
    expects = [Expectation("xmp", name, list(said.value), visible=visible) for name, said, _ in group]
    draft.send(Phase.XMP, _request(scene, group), [number for *_, number in group], *expects)
