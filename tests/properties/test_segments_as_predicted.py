"""Each request of segments does what its effects declare, and nothing else; also where numbers follow starts.

Between two requests, and after the last one, the prediction is compared with what the model of a server shows.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from msauto.aspects import ASPECTS, snapshot_of
from msauto.model.plan import Target
from msauto.model.ports import LiveTarget
from msauto.model.server import Dialect
from msauto.model.snapshot import compare, predict
from tests.examples import examples
from tests.properties.test_plan_is_minimal import FRAMES, segments_of, wanted_segments
from tests.unit.planning.planning_world import Clip, Stage, stage
from tests.unit.planning.playbook_forms import asset_intent


@st.composite
def tasks(draw: st.DrawFn) -> dict[str, Any]:
    exactly = {"exactly": ["segments"]} if draw(st.booleans()) else {}
    if draw(st.integers(0, 3)) == 0:
        title = draw(st.sampled_from([{}, {"title": "a"}]))
        return {"segmentation": {"duration": draw(st.integers(1, 4)), **title}, **exactly}
    desired = draw(wanted_segments(3))
    for item in desired:
        if draw(st.integers(0, 3)) == 0:
            item["state"] = "absent"
            item.pop("title", None)
        elif draw(st.booleans()):
            item["keywords"] = draw(st.sampled_from(["", "k"]))
    return {"segments": desired, **exactly}


@settings(max_examples=examples(300))
@given(st.data())
def test_the_prediction_comes_true_step_by_step(data: st.DataObject) -> None:
    live, task = data.draw(segments_of(4)), data.draw(tasks())
    update, numbers = (
        data.draw(st.sampled_from(["recreate", "overwrite"])),
        data.draw(st.sampled_from(["fixed", "by_start"])),
    )
    dialect = Dialect(segment_update=update, segment_numbers=numbers)  # type: ignore[arg-type]
    clip = Clip("Film", frames=FRAMES, segments=live)
    context = stage(clip, dialect=dialect, reports_keywords=data.draw(st.booleans()))
    context.server.renumber(clip)
    for target in context.plan(asset_intent({"title": "Film", **task})).targets:
        if target.error is None:
            check(context, target, 0)
        for done, request in enumerate(target.requests, 1):
            context.server.apply(request)
            check(context, target, done)


def check(context: Stage, target: Target, done: int) -> None:
    """Check that all is as predicted after the first requests, and that nothing else changed."""
    asset = context.asset("Film")
    read = snapshot_of(LiveTarget(asset=asset), ["segment"])
    held, expected = predict([target.holding or ()], 1), predict(target.effects, done)
    found = compare({**held, **expected}, target.others.items(), read, ASPECTS)
    wrong = {
        thing: verdict
        for thing, verdict in found.verdicts.items()
        if verdict != ("before" if thing in expected and not expected[thing].done else "predicted")
    }
    assert (wrong, found.lost, found.moved, found.new) == ({}, [], [], []), (
        done,
        context.server.sent,
    )
