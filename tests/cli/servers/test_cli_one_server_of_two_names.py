"""Two hosts of one run that are one server are an error that names both, before anything is read."""

from __future__ import annotations

import pytest

from msauto.plugins.simulator.embedded import Simulator
from tests.cli.command_line import Desk
from tests.tables import table

INV = ("-i", "inventory.yml")
TASK = {"asset": {"title": "EP001", "fields": {"comment": "x"}}}


def two_hosts(desk: Desk, url: str) -> None:
    desk.inventory(
        {
            "news": {"server": {"url": desk.url}, "database": "NEWS"},
            "archive": {"server": {"url": url}, "database": "ARCHIVE"},
        }
    )


def spellings(desk: Desk) -> list[str]:
    port = desk.url.rpartition(":")[2]
    hosts = (
        "127.0.0.1",
        "localhost",
        "LocalHost",
        "localhost.",
        "0.0.0.0",
        "[::1]",
        "[0:0::1]",
        "[::ffff:127.0.0.1]",
    )
    return [f"HTTP://{host}:{port}/" for host in hosts] + [f"https://127.0.0.1:{port}"]


@table("cli/both_names_of_a_server", "arguments")
def test_every_command_that_would_use_both(
    desk: Desk, sim: Simulator, arguments: tuple[str, ...]
) -> None:
    desk.write("play.yml", [{"hosts": "all", "tasks": [TASK]}])
    for url in spellings(desk):
        two_hosts(desk, url)
        run = desk.run(*arguments, *INV)
        told = run.out if arguments[0] == "validate" else run.err
        assert run.code == 1
        for words in (
            "'news' (inventory.yml:5:14)",
            "'archive'",
            "inventory.yml:9:14",
            desk.url,
            "use one host",
        ):
            assert words in told, (url, told)
    assert sim.log == []


@pytest.mark.parametrize("name", ["127.1", "2130706433"])
def test_a_name_of_one_address_is_looked_up_once_a_run_connects(
    desk: Desk, sim: Simulator, name: str
) -> None:
    """Only the resolver of this machine takes these names for IP addresses."""
    two_hosts(desk, f"http://{name}" + desk.url[desk.url.rindex(":") :])
    desk.write("play.yml", [{"hosts": "all", "tasks": [TASK]}])
    assert desk.run("validate", *INV, "play.yml").code == 0
    run = desk.run("plan", *INV, "play.yml")
    assert run.code != 0
    for words in ("'news' and 'archive' are one server", desk.url, name, "use one host"):
        assert words in run.err
    assert sim.log == []
