"""The retry of a batch job: nothing is done twice, and what the first attempt found is still in the summary."""

from __future__ import annotations

from typing import Any

import pytest

from msauto.plugins.simulator.embedded import Simulator
from tests.cli.batch.test_cli_batch import RETRY, batch, run
from tests.cli.command_line import Desk, Said

pytestmark = pytest.mark.usefixtures("hurried")
EXPORT = {"name": "PARTNER_EXPORT_VERSION"}
COMMENT = {
    "asset": {"title": "{{ item }}", "fields": {"comment": "new"}},
    "loop": ["EP001", "EP002"],
}
BUSY = ("status:503@POST .*EP002*3",)
IN_DOUBT = ("after:edit:EP001:comment:HAND@POST .*PARTNER*1", "done_status:503@POST .*PARTNER*1")


def retried(desk: Desk, *tasks: dict[str, Any], **play: Any) -> Said:
    desk.write("play.yml", [{"hosts": "all", "tasks": list(tasks), **play}])
    batch(desk, {"a": {"playbooks": "play.yml", "retry": RETRY}})
    return run(desk, "--format", "json")


@pytest.mark.parametrize(
    "faults", [BUSY, IN_DOUBT], ids=["another target is busy", "it may have run"]
)
@pytest.mark.parametrize("often", ["always", "once"])
def test_a_command_is_not_run_again_by_the_retry(
    desk: Desk, sim: Simulator, often: str, faults: tuple[str, ...]
) -> None:
    sim.faults.add(*faults)
    said = retried(desk, COMMENT, {"command": {**EXPORT, "title": "EP001", "run": often}})
    assert said.json["jobs"][0]["attempts"] == 2, said
    assert len([each for each in sim.writes() if "PARTNER" in each.target]) == 1


@pytest.mark.parametrize(
    "faults", [BUSY, IN_DOUBT], ids=["another target is busy", "it may have run"]
)
def test_a_handler_is_run_once_for_each_target(
    desk: Desk, sim: Simulator, faults: tuple[str, ...]
) -> None:
    sim.faults.add(*faults)
    retried(desk, {**COMMENT, "notify": "export"}, handlers=[{"name": "export", "command": EXPORT}])
    sent = [each.target for each in sim.writes() if "PARTNER" in each.target]
    assert sorted("EP001" in each for each in sent) == [False, True]


@pytest.mark.parametrize(
    "busy", [None, "EP001", "EP002"], ids=["no retry", "the retry of it", "the retry of another"]
)
def test_what_was_changed_outside_is_named_whichever_attempt_overwrites_it(
    desk: Desk, sim: Simulator, busy: str | None
) -> None:
    assert retried(desk, COMMENT).code == 0
    sim.state.clip("EP001").home.fields["comment"] = "CALL THE DESK"
    sim.faults.add(*([f"status:503@POST .*{busy}*3"] if busy else []))
    desk.play({**COMMENT, "asset": {"title": "{{ item }}", "fields": {"comment": "two"}}})
    said = run(desk)
    assert (said.code, "changed outside" in said.out) == (0, True), said


def test_what_the_first_attempt_overwrote_before_it_failed_is_named(
    desk: Desk, sim: Simulator
) -> None:
    asset = {"title": "EP001", "fields": {"comment": "one", "user_0": "one"}}
    assert retried(desk, {"asset": asset}).code == 0
    sim.state.clip("EP001").home.fields["comment"] = "CALL THE DESK"
    desk.play({"asset": {**asset, "fields": {"comment": "two", "user_0": "two"}}})
    sim.faults.add("status:503@POST .*user_0*3")
    said = run(desk)
    assert said.code == 0, said
    assert "2 attempts" in said.out
    assert 'EP001 changed outside: field comment "CALL THE DESK"' in " ".join(said.out.split())
