"""What others changed between runs, made hard: keys given again, failed runs, policies, and secrets."""

from __future__ import annotations

import json
from threading import Event
from typing import Any

import pytest

import msauto
from msauto.report.text import render_plan, render_result
from msauto.secrets.redacted_plans import redact_plan
from msauto.simulator import Fault, ServerState, SimMarker
from tests.stage import Stage, changes, errors


def task(markers: list[dict[str, Any]] | None = None, name: str = "Film", **keys: Any) -> dict[str, Any]:
    asset: dict[str, Any] = {k: keys.pop(k) for k in ("fields", "links", "exactly", "segments") if k in keys}
    asset |= {"markers": markers} if markers is not None else {}
    return {"name": name, "asset": {"title": "Film", **asset}, **keys}


def ad(at: Any = 22_500, title: str = "Ad break", **more: Any) -> dict[str, Any]:
    return {"at": at, "track": "Cue Point", **({"title": title} if title else {}), **more}


def outside(plan: Any) -> dict[str, Any]:
    return {f"{c.aspect} {c.key}": c.outside.left for t in plan.targets for c in t.changes if c.outside is not None}


def markers(stage: Stage) -> list[SimMarker]:
    return stage.sim.state.clip("Film").markers


# the marker that we made -------------------------------------------------------------------------------------


def test_a_stale_uid_given_again_is_not_ours(stage: Stage) -> None:
    """Ours (1) is deleted and made again as 6; 1 is then given to a marker of theirs with that title."""
    stage.apply(task([ad()]))
    markers(stage)[:] = [SimMarker(5, 10, {"track": "General", "title": "x"})]
    stage.apply(task([ad()]))
    assert [(m.uid, m.pos) for m in markers(stage)] == [(5, 10), (6, 22_500)]
    theirs = SimMarker(1, 40_000, {"track": "Cue Point", "title": "Ad break", "user": "desk"})
    markers(stage)[:] = [theirs]  # 6 deleted by hand
    stage.apply(task([ad()]))
    assert theirs.pos == 40_000
    assert any(m.pos == 40_000 for m in markers(stage))


def test_two_records_of_one_place(stage: Stage) -> None:
    """As 1a, but ours (6) was moved: 6 goes back, never 1."""
    stage.apply(task([ad()]))
    markers(stage)[:] = [SimMarker(5, 10, {"track": "General", "title": "x"})]
    stage.apply(task([ad()]))
    ours = next(m for m in markers(stage) if m.uid == 6)
    ours.pos = 22_600
    markers(stage).append(SimMarker(1, 40_000, {"track": "Cue Point", "title": "Ad break"}))
    assert changes(stage.plan(task([ad()]))) == ["change marker uid 6"]


def test_two_records_of_one_place_other_order(stage: Stage) -> None:
    """As 1b, but the stale record has the higher uid (a server that gives the lowest free one)."""
    markers(stage)[:] = [SimMarker(n, n, {"track": "General", "title": "x"}) for n in range(1, 9)]
    stage.apply(task([ad()]))
    markers(stage)[:] = []
    stage.apply(task([ad()]))
    (ours,) = markers(stage)
    assert ours.uid == 1
    ours.pos = 22_600
    markers(stage).append(SimMarker(9, 40_000, {"track": "Cue Point", "title": "Ad break"}))
    assert changes(stage.plan(task([ad()]))) == ["change marker uid 1"]


def test_a_default_track_that_was_moved_is_one_change(stage: Stage) -> None:
    item = {"at": 22_500, "title": "Ad break"}
    stage.apply(task([item]))
    markers(stage)[0].pos = 22_600
    assert changes(stage.plan(task([item]))) == ["change marker uid 1"]


def test_without_a_title_moved_by_a_user_is_one_change(stage: Stage) -> None:
    item = {"at": 22_500, "track": "Profanity Start"}
    stage.apply(task([item]))
    markers(stage)[0].pos, markers(stage)[0].fields["user"] = 22_600, "ops2"
    assert changes(stage.plan(task([item]))) == ["change marker uid 1"]


def test_two_tasks_and_markers_that_others_exchanged(stage: Stage) -> None:
    a, b = task([ad(100)], "A"), task([ad(200)], "B")
    stage.apply(a, b)
    one, two = markers(stage)
    one.pos, two.pos = 200, 300
    assert errors(stage.plan(a, b)) == []


def test_removed_at_the_place_to_which_ours_was_moved(stage: Stage) -> None:
    stage.apply(task([ad()]))
    markers(stage)[0].pos = 22_600
    result = stage.apply(task([ad()], "A"), task([ad(22_600, state="absent")], "B"))
    assert result.ok
    assert [m.pos for m in markers(stage)] == [22_500]


def test_one_place_in_two_forms(stage: Stage) -> None:
    stage.apply(task([ad()]))
    markers(stage)[0].pos = 22_600
    other = task([{"at": "00:15:00:00", "track": "Cue Point", "comment": "two spots"}], "B")
    plan = stage.plan(task([ad()], "A"), other)
    assert errors(plan) == []
    assert len(changes(plan)) == 1


def test_uid_given_again_to_a_marker_that_differs_in_comment_and_user(stage: Stage) -> None:
    stage.apply(task([ad(comment="two spots")]))
    theirs = SimMarker(1, 40_000, {"track": "Cue Point", "title": "Ad break", "comment": "sponsor", "user": "desk"})
    markers(stage)[:] = [theirs]
    stage.apply(task([ad(comment="two spots")]))
    assert any(m.pos == 40_000 and m.fields.get("comment") == "sponsor" for m in markers(stage))


def test_title_edited_and_moved_is_not_a_second_one_unsaid(stage: Stage) -> None:
    stage.apply(task([ad()]))
    markers(stage)[0].pos, markers(stage)[0].fields["title"] = 22_600, "Ad break LATE"
    plan = stage.plan(task([ad()]))
    told = [c.outside for t in plan.targets for c in t.changes]
    assert "deleted outside" not in " ".join(" ".join(render_plan(plan)).split()), told


def test_recorded_again_on_a_server_that_shows_no_identity(stage: Stage) -> None:
    clip = stage.sim.state.clip("Film")
    stage.apply(task([ad()]))
    clip.create_time = "2026-11-22T10:00:00"
    clip.markers[:] = [SimMarker(1, 30_000, {"track": "Cue Point", "title": "Ad break"})]
    assert changes(stage.plan(task([ad()]))) == ["add marker Cue Point@22500"]


def test_twins_of_our_uid_are_left_alone(stage: Stage) -> None:
    stage.apply(task([ad()]))
    fields = {"track": "Cue Point", "title": "Ad break"}
    markers(stage)[:] = [SimMarker(1, 30_000, dict(fields)), SimMarker(1, 40_000, dict(fields))]
    assert "change marker uid 1" not in changes(stage.plan(task([ad()])))


def test_recorded_again_without_a_creation_time(stage: Stage) -> None:
    clip = stage.sim.state.clip("Film")
    clip.create_time = ""
    stage.apply(task([ad()]))
    clip.markers[:] = [SimMarker(1, 30_000, {"track": "Cue Point", "title": "Ad break"})]
    clip.frames += 1000
    assert changes(stage.plan(task([ad()]))) == ["add marker Cue Point@22500"]


def test_a_marker_that_the_playbook_named_by_uid_and_no_longer_does(stage: Stage) -> None:
    """A run made it at 100; then a task named its uid to put it at 200. A new task at 200 means the one there."""
    stage.apply(task([ad(100)]))
    stage.apply(task([{"uid": 1, "at": 200}]))
    markers(stage)[0].pos = 300
    assert changes(stage.plan(task([ad(100)]))) == ["add marker Cue Point@100"]


# keep, refuse, contradiction -----------------------------------------------------------------------------------


def test_our_own_deletion_is_not_outside(stage: Stage) -> None:
    """Deleted by hand, made again by us, removed by us; desired again: it must come, with keep too."""
    stage.apply(task([ad()]))
    markers(stage)[:] = [SimMarker(5, 10, {"track": "General", "title": "x"})]
    stage.apply(task([ad()]))
    stage.apply(task([ad(state="absent")]))
    assert [m.uid for m in markers(stage)] == [5]
    plan = stage.plan(task([ad()], outside="keep"))
    assert (changes(plan), outside(plan)) == (["add marker Cue Point@22500"], {})


def test_two_tasks_with_other_policies_for_one_value(stage: Stage) -> None:
    fields = {"comment": "Ready"}
    stage.apply(task(fields=fields))
    stage.sim.state.clip("Film").home.fields["comment"] = "DESK"
    one, other = task(None, "A", fields=fields), task(None, "B", fields=fields, outside="keep")
    first, second = stage.plan(one, other), stage.plan(other, one)
    assert (changes(first), errors(first)) == (changes(second), errors(second))


def test_refuse_of_the_second_task_counts(stage: Stage) -> None:
    fields = {"comment": "Ready"}
    stage.apply(task(fields=fields))
    stage.sim.state.clip("Film").home.fields["comment"] = "DESK"
    assert errors(stage.plan(task(None, "A", fields=fields), task(None, "B", fields=fields, outside="refuse")))


def test_keep_of_a_deleted_link_with_fields(stage: Stage) -> None:
    link = {"folder": "Playout", "title": "Tonight", "comment": "x"}
    assert stage.apply(task(links=[link])).ok
    news = stage.sim.state.databases["NEWS"]
    news.remove_link(news.clip("Film").entries[1])
    plan = stage.plan(task(links=[link], outside="keep"))
    assert changes(plan) == []
    link["comment"] = "y"
    plan = stage.plan(task(links=[link], outside="keep"))
    assert changes(plan) == []


def test_exactly_keeps_what_others_changed_of_ours_moved(stage: Stage) -> None:
    stage.apply(task([ad(), ad(100, "B")]))
    markers(stage)[0].pos = 22_600
    plan = stage.plan(task([ad(), ad(100, "B")], exactly={"markers": True}, outside="keep"))
    assert changes(plan) == []


def test_keep_of_a_marker_ours_moved_onto_a_wanted_place_is_no_second(stage: Stage) -> None:
    stage.apply(task([ad(100), ad(200)]))
    one, two = markers(stage)
    one.pos, two.pos = 200, 300
    plan = stage.plan(task([ad(100), ad(200)], outside="keep"))
    assert changes(plan) == []


def renamed(comment: str, **keys: Any) -> dict[str, Any]:
    asset = {"title": "Feature", "was": "Film", "fields": {"comment": comment}}
    return {"name": "Feature", "asset": asset, **keys}


def test_a_title_that_is_kept_is_refused_and_nothing_is_written_to_it(stage: Stage) -> None:
    assert stage.apply(renamed("one")).ok
    news = stage.sim.state.databases["NEWS"]
    news.change_entry(news.clip("Feature").home, title="Film")
    assert errors(stage.plan(renamed("two", outside="keep")))


def test_a_title_that_is_kept_never_writes_to_another_clip(stage: Stage) -> None:
    """As 2m; meanwhile another clip... has no such title when planning, and gets it before the write."""
    assert stage.apply(renamed("one")).ok
    news = stage.sim.state.databases["NEWS"]
    news.change_entry(news.clip("Feature").home, title="Film")
    plan = stage.plan(renamed("two", outside="keep"))
    news.add_clip("Feature", "Raw", frames=100)
    stage.applied(plan, stage.resolved(renamed("two", outside="keep")))
    assert news.clip("Feature").home.fields.get("comment", "") != "two"


# failures, undo ------------------------------------------------------------------------------------------------


def test_a_rejected_write_does_not_forget_how_we_left_it(stage: Stage) -> None:
    stage.apply(task(fields={"comment": "one"}))
    stage.sim.faults.add("status:403@POST")
    assert not stage.apply(task(fields={"comment": "two"})).ok
    stage.sim.faults.clear()
    stage.sim.state.clip("Film").home.fields["comment"] = "CALL THE DESK"
    assert changes(stage.plan(task(fields={"comment": "two"}, outside="keep"))) == []
    assert outside(stage.plan(task(fields={"comment": "two"}))) == {"field comment": "one"}


def test_an_outside_change_is_still_named_after_a_run_that_did_not_send_it(stage: Stage) -> None:
    fields = {"comment": "one", "user_0": "a"}
    stage.apply(task(fields=fields))
    stage.sim.state.clip("Film").home.fields["user_0"] = "BY HAND"
    new = {"comment": "two", "user_0": "b"}
    stage.sim.faults.add("status:403@POST")
    result = stage.apply(task(fields=new))
    assert not result.ok
    stage.sim.faults.clear()
    assert "field user_0" in outside(stage.plan(task(fields=new)))


def test_undo_of_a_new_marker_is_not_a_deletion_outside(stage: Stage) -> None:
    stage.apply(task([ad()]))
    assert stage.undo().ok
    plan = stage.plan(task([ad()], outside="keep"))
    assert (changes(plan), outside(plan)) == (["add marker Cue Point@22500"], {})


def test_lost_answer_that_was_done_is_ours(stage: Stage) -> None:
    stage.apply(task(fields={"comment": "one"}))
    stage.sim.faults.add("cut_after@POST*1")
    stage.apply(task(fields={"comment": "two"}))
    stage.sim.faults.clear()
    plan = stage.plan(task(fields={"comment": "three"}, outside="keep"))
    assert (changes(plan), outside(plan)) == (["change field comment"], {})


def test_a_marker_made_by_a_run_that_failed_later_is_ours(stage: Stage) -> None:
    stage.sim.faults.add("status:403@.*SETFIELD")
    stage.sim.faults.add("status:403@CREATEMARKER.*General")
    stage.apply(task([ad(), {"at": 5, "title": "x"}]))
    stage.sim.faults.clear()
    ours = next((m for m in markers(stage) if m.pos == 22_500), None)
    if ours is None:
        pytest.skip("order")
    ours.pos = 22_600
    assert f"change marker uid {ours.uid}" in changes(stage.plan(task([ad()])))


def test_a_lost_request_does_not_forget_how_we_left_it(stage: Stage) -> None:
    stage.apply(task(fields={"comment": "one"}))
    stage.sim.state.clip("Film").home.fields["comment"] = "CALL THE DESK"
    stage.sim.faults.add("cut_before@POST")
    assert not stage.apply(task(fields={"comment": "two"})).ok
    stage.sim.faults.clear()
    assert outside(stage.plan(task(fields={"comment": "two"}))) == {"field comment": "one"}


def test_a_killed_run_does_not_forget_how_we_left_it(stage: Stage) -> None:
    """It dies while the server holds its request, which is never done."""
    came, goes_on = Event(), Event()

    def hold(_: ServerState) -> None:
        came.set()
        goes_on.wait(30)

    stage.apply(task(fields={"comment": "one"}))
    stage.sim.state.clip("Film").home.fields["comment"] = "CALL THE DESK"
    stage.sim.faults.add(Fault("POST", "before", times=1, change=hold), "swallow@POST")
    stage.killed(task(fields={"comment": "two"}), when=came.is_set)
    goes_on.set()
    stage.sim.faults.clear()
    stage.write(task(fields={"comment": "three"}))
    files = (str(stage.folder / name) for name in ("playbook.yml", "inventory.yml"))
    result = msauto.apply(msauto.load(next(files), inventory=next(files), state_dir=stage.place))
    (change,) = json.loads(result.to_json())["targets"][0]["changes"]
    assert change["outside"]["left"] == "one"


def test_a_run_that_failed_elsewhere_tells_what_it_overwrote(stage: Stage) -> None:
    other = {"name": "Other", "asset": {"title": "Other", "fields": {"comment": "x"}}}
    stage.sim.state.databases["NEWS"].add_clip("Other", "Raw", frames=100)
    stage.apply(task(fields={"comment": "one"}))
    stage.sim.state.clip("Film").home.fields["comment"] = "CALL THE DESK"
    stage.sim.faults.add("status:403@POST .*Other")
    told = " ".join(" ".join(render_result(stage.apply(task(fields={"comment": "two"}), other))).split())
    assert "1 failed" in told
    assert "1 thing was changed outside, and is overwritten. For details: msauto history" in told


# secrets ---------------------------------------------------------------------------------------------------------


def test_a_kept_value_of_a_secret_field_is_not_shown(stage: Stage) -> None:
    stage.apply(task(fields={"comment": "placeholder"}))
    stage.sim.state.clip("Film").home.fields["comment"] = "tok-former-secret"
    secret = task(fields={"comment": "{{ 'tok-new-secret' | secret }}"}, outside="keep")
    plan = redact_plan(stage.plan(secret))
    assert "tok-former-secret" not in " ".join(plan.warnings) + " ".join(render_plan(plan))


def test_a_refused_value_of_a_secret_field_is_not_shown(stage: Stage) -> None:
    stage.apply(task(fields={"comment": "placeholder"}))
    stage.sim.state.clip("Film").home.fields["comment"] = "tok-former-secret"
    secret = task(fields={"comment": "{{ 'tok-new-secret' | secret }}"}, outside="refuse")
    assert "tok-former-secret" not in " ".join(errors(redact_plan(stage.plan(secret))))


def test_a_kept_marker_with_a_secret_is_not_shown(stage: Stage) -> None:
    stage.apply(task([ad(comment="plain")]))
    markers(stage)[0].fields["comment"] = "tok-former-secret"
    plan = redact_plan(stage.plan(task([ad(comment="{{ 'tok-new-secret' | secret }}")], outside="keep")))
    assert "tok-former-secret" not in " ".join(plan.warnings)


def test_a_kept_item_of_a_channel_with_a_secret_is_not_shown(stage: Stage) -> None:
    def ticker(title: str, **more: Any) -> dict[str, Any]:
        item = {"guid": "n-1", "file": "n-1.xml", "item": {"title": title, "description": "x"}}
        return {"name": "Ticker", "rss": {"channel": "ticker", "items": [item]}, **more}

    stage.sim.state.add_channel("ticker")
    stage.apply(ticker("plain"))
    stage.sim.state.channels["ticker"].items[0].title = "tok-former-secret"
    plan = redact_plan(stage.plan(ticker("{{ 'tok-new-secret' | secret }}", outside="keep")))
    (warning,) = plan.warnings
    assert "is kept" in warning
    assert "tok-former-secret" not in warning


def test_a_kept_secret_with_odd_signs_is_not_shown(stage: Stage) -> None:
    """The value is quoted by repr in the message: a secret with a backslash or a quote."""
    odd = "p\\\\q'\"zz-odd"
    stage.apply(task(fields={"comment": "placeholder"}))
    stage.sim.state.clip("Film").home.fields["comment"] = odd
    plan = stage.plan(
        task(None, "other", fields={"user_1": "{{ secret_value | secret }}"}, vars={"secret_value": odd}),
        task(fields={"comment": "new"}, outside="keep"),
    )
    assert plan.secrets
    assert "zz-odd" not in " ".join(redact_plan(plan).warnings)


# More of 1-3 ---------------------------------------------------------------------------------------------------------


def test_deleted_and_made_again_by_us_without_undo_then_exactly(stage: Stage) -> None:
    """As above, by `exactly`; with refuse, the target must not be in error for our own deletion."""
    stage.apply(task([ad(), ad(5, "B")]))
    markers(stage)[:] = [m for m in markers(stage) if m.pos == 5]
    markers(stage)[0].uid = 2
    stage.apply(task([ad(), ad(5, "B")]))
    stage.apply(task([ad(5, "B")], exactly={"markers": True}))
    assert errors(stage.plan(task([ad(), ad(5, "B")], outside="refuse"))) == []


def test_keep_of_one_segment_while_another_is_moved_over_it(stage: Stage) -> None:
    """2 was moved by hand to 900 and stays; 1 gets longer, to 1000: they overlap, without a warning."""

    def segments(end: int) -> list[dict[str, Any]]:
        return [{"number": 1, "start": 0, "duration": end}, {"number": 2, "start": 1000, "duration": 1000}]

    assert stage.apply(task(segments=segments(900))).ok
    two = next(s for s in stage.sim.state.clip("Film").segments if s.number == 2)
    two.start = 900
    work = task(segments=segments(1000), outside="keep")
    work["asset"]["lossy"] = True
    whole = stage.plan(work)
    said = [*whole.warnings, *errors(whole)]
    assert changes(whole) == [] or any("overlap" in each for each in said), (changes(whole), said)


def test_keep_of_a_moved_marker_named_by_another_task_too(stage: Stage) -> None:
    """One task keeps, another one (other tags) names the same marker: both orders give the same."""
    stage.apply(task([ad()]))
    markers(stage)[0].pos = 22_600
    one, other = task([ad()], "A", tags=["a"]), task([ad()], "B", tags=["b"], outside="keep")
    first, second = stage.plan(one, other), stage.plan(other, one)
    assert (changes(first), errors(first)) == (changes(second), errors(second))


def test_a_kept_deleted_link_in_exactly(stage: Stage) -> None:
    links = [{"folder": "Playout", "title": "Tonight"}, {"folder": "Playout", "title": "Late"}]
    assert stage.apply(task(links=links)).ok
    news = stage.sim.state.databases["NEWS"]
    news.remove_link(next(e for e in news.clip("Film").entries if e.title == "Tonight"))
    result = stage.apply(task(links=links, exactly={"links": True}, outside="keep"))
    assert result.ok
    assert len(news.clip("Film").entries) == 2


def test_kept_makes_no_change_so_no_handler(stage: Stage) -> None:
    stage.apply(task(fields={"comment": "one"}))
    stage.sim.state.clip("Film").home.fields["comment"] = "BY HAND"
    play = {
        "name": "P",
        "tasks": [task(fields={"comment": "one"}, outside="keep", notify="x")],
        "handlers": [{"name": "x", "command": {"name": "PARTNER_EXPORT_VERSION"}}],
    }
    assert changes(stage.plan(play)) == []


def test_rejected_link_or_marker_keeps_what_we_made(stage: Stage) -> None:
    """A marker of ours that a run failed to change is still ours."""
    stage.apply(task([ad()]))
    stage.sim.faults.add("status:403@POST")
    assert not stage.apply(task([ad(comment="two spots")])).ok
    stage.sim.faults.clear()
    markers(stage)[0].pos = 22_600
    assert changes(stage.plan(task([ad()]))) == ["change marker uid 1"]


def test_a_later_phase_that_was_not_sent_keeps_refuse(stage: Stage) -> None:
    """Fields fail, so the marker is not sent: how it was left must still be known."""
    stage.apply(task([ad(comment="one")], fields={"comment": "one"}))
    stage.sim.faults.add("status:403@.*SETFIELD")
    assert not stage.apply(task([ad(comment="two")], fields={"comment": "two"})).ok
    stage.sim.faults.clear()
    markers(stage)[0].fields["comment"] = "BY HAND"
    assert errors(stage.plan(task([ad(comment="two")], outside="refuse")))
