"""An example with every key of the language, exactly as written, against the simulator.

Replacements are reported, the rest is valid. What another server cannot plan is an error with a remedy.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from msauto.plugins.simulator.embedded import Simulator
from tests.cli.command_line import Desk, check_golden

LANGUAGE = Path(__file__).parents[1] / "cases" / "language"
CONTRACT = (LANGUAGE / "contract.yml").read_text(encoding="utf-8")
INVENTORY = (LANGUAGE / "contract-inventory.yml").read_text(encoding="utf-8")
STANDS_FOR = {
    "created_before: …": "created_before: 2026-12-31",
    "block: [...]": "block: [{asset: {title: Long Film}}]",
}
"""What the example writes dots for."""


@pytest.fixture
def contract(desk: Desk, sim: Simulator) -> Desk:
    """A desk with the example's inventory and playbook, the dots replaced, and the files that it names."""
    desk.environment["STUDIO_A_PASSWORD"] = "s"
    desk.write("inventory.yml", INVENTORY.replace("http://127.0.0.1:7901", sim.url))
    text = CONTRACT
    for dots, words in STANDS_FOR.items():
        assert dots in text
        text = text.replace(dots, words)
    desk.write("site.yml", text)
    for name in ("ca.pem", "client.pem", "batch.xml"):
        desk.write(name, (LANGUAGE / "batch.xml").read_bytes())
    desk.write("shows.yml", "show: Evening News\n")
    desk.write("more.yml", "- asset: {title: Promo 3}\n")
    desk.write("msauto.toml", "")
    return desk


def test_to_the_letter_only_the_dots_are_wrong(contract: Desk) -> None:
    contract.write("letter.yml", CONTRACT)
    sourced = contract.run("validate", "letter.yml", "-i", "inventory.yml")
    assert sourced.code == 1
    output = sourced.out + sourced.err
    numbers = re.findall(r"^letter\.yml:(\d+):\d+: .*$", output, re.MULTILINE)
    lines = CONTRACT.splitlines()
    wrong = [lines[int(number) - 1] for number in numbers]
    with_dots = []
    for dots in STANDS_FOR:
        with_dots += [line for line in lines if dots in line][:1]
    assert wrong == with_dots


def test_it_validates(contract: Desk) -> None:
    sourced = contract.run("validate", "site.yml", "-i", "inventory.yml")
    assert (sourced.code, sourced.err) == (0, "No errors found.\n")


def test_it_plans_but_for_what_this_house_is_not(contract: Desk, sim: Simulator) -> None:
    contract.inventory({"studio-a": {"server": {"url": sim.url}, "database": "NEWS"}}, "plain.yml")
    text = (contract.folder / "site.yml").read_text(encoding="utf-8")
    contract.write("site.yml", text.replace("hosts: playout ", "hosts: all "))
    sourced = contract.run("plan", "site.yml", "-i", "plain.yml", "-e", "house=Kanal 5")
    assert sourced.code == 1
    check_golden("contract-example.txt", sourced.out)


def test_with_positions_that_count_from_its_origin_the_episode_plans(
    contract: Desk, sim: Simulator
) -> None:
    text = (contract.folder / "site.yml").read_text(encoding="utf-8")
    for position in ("00:00:10:00", "00:00:00:00", "00:12:30:00"):
        text = re.sub(rf'((?:first_frame|start|at): )"{position}"', rf'\1"10{position[2:]}"', text)
    contract.write("site.yml", text.replace("hosts: playout ", "hosts: all "))
    contract.inventory({"studio-a": {"server": {"url": sim.url}, "database": "NEWS"}}, "plain.yml")
    sourced = contract.run(
        "plan", "site.yml", "-i", "plain.yml", "-e", "house=Kanal 5", "--format", "json"
    )
    episode = next(each for each in sourced.json["targets"] if each["name"] == "Evening News raw")
    assert episode["error"] is None
    assert [(change["aspect"], change["key"]) for change in episode["changes"]] == [
        ("title", "title"),
        ("field", "comment"),
        ("field", "first_frame"),
        ("field", "user_0"),
        ("xmp", "dc:subject"),
        ("segment", "1"),
        ("segment", "7"),
        ("marker", "Cue Point@18750"),
        ("link", "Playout/Tonight/Evening News"),
        ("command", "PARTNER_EXPORT_VERSION"),
    ]
