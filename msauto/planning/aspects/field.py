"""Link fields: one SETFIELD for each that differs (interface, «Link»).

A field that the Clip XML does not report is compared with what we last wrote; if nothing is recorded it is written
once (field notes, «fields that the Clip XML does not report»).
"""

from __future__ import annotations

from collections.abc import Mapping

from msauto.model.plan import Basis, Expect, Json
from msauto.model.wanted import Position, Said
from msauto.planning.compare import NUMBERS, as_number, same_value
from msauto.planning.draft import Draft, Scene, left_alone
from msauto.planning.order import Phase
from msauto.planning.positions import beyond, position_of, to_frames
from msauto.server import requests, versions

POSITIONS = frozenset({"first_frame", "last_frame", "icon_pos"})


def plan_fields(scene: Scene, wanted: Mapping[str, Said[str | Position]], draft: Draft) -> None:
    """Write each field that is not as wanted."""
    for name, said in wanted.items():
        _plan_field(scene, name, said, draft)


def _plan_field(scene: Scene, name: str, said: Said[str | Position], draft: Draft) -> None:
    value = _on_the_wire(scene, name, said)
    before, basis = _known(scene, name)
    draft.look(f"field:{name}")
    if basis != "none" and same_value(name, before, value):
        return
    still = scene.still.get(f"field:{name}", before)
    if basis != "none" and not same_value(name, before, None if still is None else str(still)):
        draft.warnings.append(left_alone(f"{scene.title}: field {name}", _shown(name, before), still))
        return
    if name == "user_0":
        versions.require(scene.server, versions.Feature.SET_USER_0)
    shown_before = _shown(name, before) if basis != "none" else None
    number = draft.change(
        "change", "field", name, before=shown_before, after=_shown(name, value), source=said.source, basis=basis
    )
    expect = Expect("field", name, value, visible=basis == "live")
    draft.send(Phase.FIELD, requests.set_field(scene.path, name, value), [number], expect)


def _known(scene: Scene, name: str) -> tuple[str | None, Basis]:
    """Return the value that the field has, and how we know."""
    shown = scene.asset.attributes.get(name)
    if shown is not None:
        return shown, "live"
    if scene.memory.get(f"reported:{name}") is True:
        return "", "live"  # this server showed the field of this asset before: not shown is empty
    remembered = scene.memory.get(f"field:{name}")
    return (None, "none") if remembered is None else (str(remembered), "ledger")


def _on_the_wire(scene: Scene, name: str, said: Said[str | Position]) -> str:
    if name not in POSITIONS or said.value == "":
        return str(said.value)
    position = position_of(said.value, said.source)
    frame = to_frames(position, scene.asset, said.source)
    # The last frame may be given as the frame after it: the interface does not say which of the two it is.
    end = scene.asset.frames
    if end is not None and frame > (end if name == "last_frame" else end - 1):
        raise beyond(f"{name} {position} (frame {frame}) lies beyond the end", scene.asset, said.source)
    return str(frame)


def _shown(name: str, text: str | None) -> Json:
    number = as_number(text) if name in NUMBERS else None
    return text if number is None else number
