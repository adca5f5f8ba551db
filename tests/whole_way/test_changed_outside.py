"""What others change between two runs is named before it is overwritten, kept, or refused."""

from __future__ import annotations

from typing import Any

from msauto.model.plan import Plan
from msauto.report import html, markdown
from msauto.report.text import render_plan, render_result
from msauto.secrets.redacted_plans import redact_plan
from msauto.simulator import SimMarker
from tests.stage import Stage, changes, errors


def film(comment: str = "Ready", *, at: int = 22_500, **task: Any) -> dict[str, Any]:
    marker = {"at": at, "track": "Cue Point", "title": "Ad break"}
    asset = {"fields": {"comment": comment}, "markers": [marker], "links": [{"folder": "Playout", "title": "Tonight"}]}
    return {"name": "Film", "asset": {"title": "Film", **asset}, **task}


def text(plan: Plan) -> str:
    """The plan as text, without its line ends."""
    return " ".join(" ".join(render_plan(plan)).split())


def outside(plan: Plan) -> dict[str, Any]:
    """The left values of what was changed outside."""
    return {
        f"{change.aspect} {change.key}": change.outside.left
        for target in plan.targets
        for change in target.changes
        if change.outside is not None
    }


def test_what_nobody_changed_is_no_change_outside(stage: Stage) -> None:
    stage.apply(film())
    assert changes(stage.plan(film())) == []
    assert outside(stage.plan(film("Steady"))) == {}


def test_a_field_that_others_changed_is_named(stage: Stage) -> None:
    run = stage.apply(film("Week 47")).run
    stage.sim.state.clip("Film").home.fields["comment"] = "CALL THE DESK"
    plan = stage.plan(film("Week 48"))
    assert outside(plan) == {"field comment": "Week 47"}
    (change,) = plan.targets[0].changes
    assert (change.before, change.after, change.outside and change.outside.run) == ("CALL THE DESK", "Week 48", run)
    assert plan.summary.outside == 1
    assert '"Week 48" (changed outside since' in text(plan)
    assert 'was "Week 47")' in text(plan)
    assert "1 thing was changed outside; to keep it: `outside: keep`." in text(plan)
    assert stage.applied(plan, stage.resolved(film("Week 48"))).ok
    assert outside(stage.plan(film("Week 49"))) == {}


def test_what_others_set_as_desired_is_no_change(stage: Stage) -> None:
    stage.apply(film("Week 47"))
    stage.sim.state.clip("Film").home.fields["comment"] = "Week 48"
    assert changes(stage.plan(film("Week 48"))) == []


def test_a_deleted_link_is_told_before_it_comes_back(stage: Stage) -> None:
    stage.apply(film())
    news = stage.sim.state.databases["NEWS"]
    news.remove_link(news.clip("Film").entries[1])
    plan = stage.plan(film())
    assert changes(plan) == ["add link Playout/Tonight"]
    assert list(outside(plan)) == ["link Playout/Tonight"]
    assert "deleted outside since" in text(plan)
    kept = stage.plan(film(outside="keep"))
    assert changes(kept) == []
    assert any("it no longer exists" in warning for warning in kept.warnings)


def test_a_moved_marker_is_one_change_back(stage: Stage) -> None:
    stage.apply(film())
    (marker,) = stage.sim.state.clip("Film").markers
    marker.pos, marker.fields["user"] = 22_600, "ops2"
    plan = stage.plan(film())
    assert changes(plan) == [f"change marker uid {marker.uid}"]
    assert outside(plan) == {f"marker uid {marker.uid}": {"frame": 22_500}}
    assert "moved outside since" in text(plan)
    assert "by user ops2" in text(plan)
    assert stage.apply(film()).ok
    assert [each.pos for each in stage.sim.state.clip("Film").markers] == [22_500]
    assert changes(stage.plan(film())) == []


def test_a_moved_marker_is_ours_also_after_a_later_change(stage: Stage) -> None:
    stage.apply(film())
    later = film()
    later["asset"]["markers"][0]["comment"] = "two spots"
    stage.apply(later)
    (marker,) = stage.sim.state.clip("Film").markers
    marker.pos = 22_600
    assert changes(stage.plan(later)) == [f"change marker uid {marker.uid}"]


def test_a_moved_marker_is_kept(stage: Stage) -> None:
    stage.apply(film())
    (marker,) = stage.sim.state.clip("Film").markers
    marker.pos = 22_600
    plan = stage.plan(film(outside="keep"))
    assert changes(plan) == []
    (warning,) = plan.warnings
    assert "was changed outside since run" in warning
    assert "it is kept" in warning


def test_a_deleted_marker_is_told(stage: Stage) -> None:
    stage.apply(film())
    stage.sim.state.clip("Film").markers.clear()
    plan = stage.plan(film())
    assert changes(plan) == ["add marker Cue Point@22500"]
    assert len(outside(plan)) == 1
    assert "deleted outside since" in text(plan)


def test_a_marker_of_others_that_has_the_uid_of_ours_is_not_moved(stage: Stage) -> None:
    stage.apply(film())
    markers = stage.sim.state.clip("Film").markers
    markers[:] = [SimMarker(markers[0].uid, 99, {"track": "Cue Point", "title": "Theirs"})]
    assert changes(stage.plan(film())) == ["add marker Cue Point@22500"]


def test_a_marker_that_was_only_changed_by_a_run_is_not_ours(stage: Stage) -> None:
    marker = SimMarker(5, 22_500, {"track": "Cue Point", "title": "Theirs"})
    stage.sim.state.clip("Film").markers.append(marker)
    stage.apply(film())
    marker.pos = 22_600
    plan = stage.plan(film())
    assert changes(plan) == ["add marker Cue Point@22500"]
    assert any("if others have moved that one" in warning for warning in plan.warnings)


def test_refuse_puts_the_target_in_error(stage: Stage) -> None:
    stage.apply(film())
    stage.sim.state.clip("Film").home.fields["comment"] = "CALL THE DESK"
    (error,) = errors(stage.plan(film(outside="refuse")))
    assert "field comment was changed outside since run" in error
    assert "`outside: keep`" in error


def test_the_task_says_more_than_its_block_and_play(stage: Stage) -> None:
    stage.apply(film())
    stage.sim.state.clip("Film").home.fields["comment"] = "CALL THE DESK"
    block = {"name": "Both", "block": [film(outside="overwrite")], "outside": "refuse"}
    assert changes(stage.plan(block)) == ["change field comment"]
    assert errors(stage.plan({"name": "A play", "outside": "refuse", "tasks": [film()]})) != []


def test_what_a_later_run_wrote_is_not_outside(stage: Stage) -> None:
    stage.apply(film("one"))
    stage.apply(film("two"))
    assert outside(stage.plan(film("one"))) == {}


def test_undo_leaves_the_value_that_it_brought_back(stage: Stage) -> None:
    stage.apply(film("one"))
    stage.apply(film("two"))
    assert stage.undo().ok
    assert outside(stage.plan(film("three"))) == {}


def test_every_form_names_it(stage: Stage) -> None:
    stage.apply(film("Week 47"))
    stage.sim.state.clip("Film").home.fields["comment"] = "CALL THE DESK"
    result = stage.apply(film("Week 48"))
    told = 'was "Week 47"'
    assert told in "".join(markdown.render_plan(result.plan))
    assert "changed outside since" in "".join(html.render_plan(result.plan))
    assert "1 thing was changed outside, and is overwritten." in " ".join(" ".join(render_result(result)).split())


def secret(value: str) -> dict[str, Any]:
    marker = {"at": 5, "title": "Ad break", "comment": f"{{{{ '{value}' | secret }}}}"}
    return {"name": "Film", "asset": {"title": "Film", "fields": {"comment": marker["comment"]}, "markers": [marker]}}


def test_a_value_with_a_secret_is_known_by_its_hash_and_never_shown(stage: Stage) -> None:
    stage.apply(secret("hunter-2-hunter"))
    assert b"hunter" not in (stage.folder / "state" / "ledger.sqlite").read_bytes()
    clip = stage.sim.state.clip("Film")
    clip.home.fields["comment"], clip.markers[0].pos = "CALL THE DESK", 50
    plan = redact_plan(stage.plan(secret("hunter-2-hunter")))
    assert outside(plan) == {"field comment": "***", "marker uid 1": {"frame": 5}}
    assert changes(plan) == ["change field comment", "change marker uid 1"]


def test_what_a_secret_overwrites_is_not_shown(stage: Stage) -> None:
    stage.apply(film("Week 47"))
    stage.sim.state.clip("Film").home.fields["comment"] = "CALL THE DESK"
    change, *_ = redact_plan(stage.plan(secret("hunter-2-hunter"))).targets[0].changes
    assert (change.secret, change.outside and change.outside.left) == (True, "***")


def test_many_that_others_changed_are_all_named(stage: Stage) -> None:
    def week(number: int) -> list[dict[str, Any]]:
        return [{"asset": {"title": each, "fields": {"comment": f"week {number} of {each}"}}} for each in promos]

    news = stage.sim.state.databases["NEWS"]
    promos = [f"Promo {number:03}" for number in range(450)]
    for each in promos:
        news.add_clip(each, "Promos", frames=100)
    stage.apply(*week(1))
    for each in promos:
        news.clip(each).home.fields["comment"] = f"by hand {each}"
    shown = text(stage.plan(*week(2)))
    assert [each for each in promos if f'was "week 1 of {each}"' not in shown] == []


def test_a_clip_that_has_another_title_now_is_named(stage: Stage) -> None:
    stage.apply(film())
    news = stage.sim.state.databases["NEWS"]
    news.add_clip("Films", "Raw", frames=100)
    news.change_entry(news.clip("Film").home, title="Tonight's Feature")
    (error,) = errors(stage.plan(film()))
    assert "asset 'Film' not found: its clip has the title \"Tonight's Feature\" now" in error
    remedy = error.partition("→")[2]
    assert remedy.index('add `was: "Tonight\'s Feature"`') < remedy.index("did you mean 'Films'?")


def test_another_clip_of_that_entry_is_not_named(stage: Stage) -> None:
    stage.apply(film())
    news = stage.sim.state.databases["NEWS"]
    news.change_entry(news.clip("Film").home, title="Tonight's Feature")
    news.clip("Tonight's Feature").create_time = "2026-11-20T10:00:00"
    (error,) = errors(stage.plan(film()))
    assert "Feature" not in error


def test_what_others_set_as_desired_counts_as_left_by_us(stage: Stage) -> None:
    stage.apply(film("Week 47"))
    stage.sim.state.clip("Film").home.fields["comment"] = "Week 48"
    (marker,) = stage.sim.state.clip("Film").markers
    marker.pos = 22_600
    stage.apply(film("Week 48", at=22_600))
    assert outside(stage.plan(film("Week 49", at=22_700))) == {}


def parts(**more: Any) -> dict[str, Any]:
    segments = [{"start": 0, "duration": 100}, {"start": 100, "duration": 100}]
    return {"name": "Film", "asset": {"title": "Film", "segments": segments}, **more}


def test_a_moved_segment_without_number_and_title_is_one_change_back(stage: Stage) -> None:
    stage.apply(parts())
    stage.sim.state.clip("Film").segments[1].start = 150
    plan = stage.plan(parts())
    assert (changes(plan), outside(plan)) == (["change segment 2"], {"segment 2": {"start": 100}})
    kept = stage.plan(parts(outside="keep"))
    assert changes(kept) == []
    assert "0 targets" not in text(kept)
    assert "What others changed of 1 target is kept." in text(kept)


def test_a_moved_piece_of_a_segmentation_is_one_change_back_or_kept(stage: Stage) -> None:
    task = {"asset": {"title": "Film", "segmentation": {"duration": 20_000}, "exactly": ["segments"]}}
    stage.apply(task)
    stage.sim.state.clip("Film").segments[1].start = 20_500
    plan = stage.plan(task)
    assert (changes(plan), outside(plan)) == (["change segment 2"], {"segment 2": {"start": 20_000}})
    assert changes(stage.plan({**task, "outside": "keep"})) == []
