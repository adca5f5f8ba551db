"""The secrets of servers never show, whatever reads them: a file as a text, a variable, another host's playbook."""

from __future__ import annotations

import json

import pytest

import msauto
from msauto.plugins.simulator.embedded import Simulator
from tests.cli.command_line import Desk
from tests.tables import one_fast_in, table

PASSWORD = "correct horse battery"
BEARER = "tok-0123456789"
HEADER = "key-9876543210"
INV = ("-i", "inventory.yml")


@pytest.fixture
def desk(desk: Desk, sim: Simulator) -> Desk:
    own = {"url": sim.url, "auth": {"basic": {"username": "ops", "password": "{{ pw }}"}}}
    other = {"url": "http://127.0.0.1:9", "auth": {"headers": {"X-Key": HEADER}}}
    third = {"url": "http://127.0.0.1:8", "auth": {"bearer_file": "token.txt"}}
    hosts = {
        "studio-a": {"server": own, "database": "NEWS", "pw": PASSWORD},
        "studio-b": {"server": other},
        "studio-c": {"server": third},
    }
    desk.inventory(hosts)
    desk.write("token.txt", f"{BEARER}\n")
    return desk


@table("playbook/secrets_of_inventories", "template", "refused")
@pytest.mark.parametrize("form", one_fast_in(2, ["text", "json"]))
def test_they_are_known_before_any_template(
    desk: Desk, template: str, refused: bool | None, form: str
) -> None:
    desk.play({"asset": {"title": "EP001", "fields": {"comment": template}}}, hosts="studio-a")
    forms = ["Y29ycmVjdCBob3Jz"]
    for secret in (PASSWORD, BEARER, HEADER):
        forms += [secret, secret.upper(), secret[::-1]]
    for verb in (("plan",), ("apply", "--yes")):
        said = desk.run(*verb, *INV, "play.yml", "--format", form)
        assert said.code == (1 if refused else 0), said
        shown = said.out + said.err
        assert "msauto itself" not in shown
        assert ("lookup does not read 'inventory.yml'" in shown) == bool(refused)
        for derived in forms:
            assert derived not in shown


def test_a_plan_that_sends_none_is_kept_and_applied(desk: Desk) -> None:
    desk.comment("new")
    desk.play({"asset": {"title": "EP001", "fields": {"comment": "new"}}}, hosts="studio-a")
    assert desk.run("plan", *INV, "play.yml", "--out", "tonight.json").code == 0
    assert desk.run("apply", "--yes", *INV, "tonight.json").code == 0
    assert desk.run("undo", "last", "--yes", *INV).code == 0


@table("security/wrong_servers", "server")
def test_the_error_of_a_wrong_form_does_not_repeat_them(server: dict[str, object] | str) -> None:
    server = json.loads(json.dumps(server).replace("$BEARER", BEARER))
    block = server if isinstance(server, str) else {"url": "http://studio-a", **server}
    plays = [{"name": "A test", "hosts": "all", "tasks": [{"asset": {"title": "Film"}}]}]
    with pytest.raises(msauto.InputError, match="must be a mapping") as error:
        msauto.load(
            plays, inventory={"all": {"hosts": {"studio-a": {"server": block, "database": "NEWS"}}}}
        )
    assert BEARER not in str(error.value)
