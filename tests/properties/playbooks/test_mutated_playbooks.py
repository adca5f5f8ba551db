"""Whatever is done to a playbook, it resolves, or every problem has a place; a traceback is a bug."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from msauto.errors import InputError
from msauto.model.facts import Facts, Need, NoAssetError
from msauto.model.live import Asset
from msauto.playbook.hosts import ResolveOptions
from msauto.playbook.resolve import resolve
from msauto.playbook.settings import load_settings
from msauto.playbook.validate import validate
from tests.examples import examples
from tests.tables import CASES

INVENTORY = (CASES / "language/tonight-inventory.yml").read_text(encoding="utf-8")
PLAYBOOK = (CASES / "language/tonight.yml").read_text(encoding="utf-8")
PIECES = [
    "", "\n", " ", "  ", "\t", ":", ": ", "- ", "[", "]", "{", "}", "{{", "}}", "{%", "%}", "'", '"', "null", "true",
    "3.10", "-1", "99999999999999999999", ".nan", "1e999", "&a ", "*a", "*c", "<<: *b", "!x ", "%", "@", "#", "---\n",
    "\x00", "\ufeff", "\u2028", "é", "😀", "|", ">", "asset", "{{ asset }}", "{{ item }}", "{{ [1] }}", "{{ {} }}",
    "{{ none }}", "{{ now }}", "{{ env }}", "{{ hostvars }}", "{{ range(9) }}", "{{ lookup }}", "state: absent",
    "title:", "loop: 5", "when: x", "00:00:00:00", "00:61:00:00", "block:", "import_tasks: x", "~", "? ", "0x10", "012",
]  # fmt: skip


def mutated(text: str) -> st.SearchStrategy[str]:
    cut = st.tuples(st.integers(0, len(text)), st.integers(0, 12), st.sampled_from(PIECES))

    def apply(cuts: list[tuple[int, int, str]]) -> str:
        found = text
        for start, length, piece in cuts:
            found = found[:start] + piece + found[start + length :]
        return found

    return st.lists(cut, min_size=1, max_size=3).map(apply)


def token_mutated(text: str) -> st.SearchStrategy[str]:
    """Values replaced whole, so that more of them get past YAML."""
    words = sorted({word.strip("[]{},:") for word in text.split() if len(word) > 2} - {""})
    return st.tuples(st.sampled_from(words), st.sampled_from(PIECES)).map(
        lambda pair: text.replace(*pair, 1)
    )


def live() -> Facts:
    return Facts(
        asset=Asset("Evening News", attributes={"frames": "300", "frame_time": "0.0400"}),
        xmp={},
        links=(),
    )


def check(playbook: str, inventory: str, folder: Path) -> None:
    play, hosts = folder / "p.yml", folder / "i.yml"
    play.write_text(playbook, encoding="utf-8", errors="replace", newline="")
    hosts.write_text(inventory, encoding="utf-8", errors="replace", newline="")
    options = ResolveOptions(
        (str(play),), (str(hosts),), env={"T": "secret"}, now=datetime(2026, 11, 20, tzinfo=UTC)
    )
    try:
        resolved = resolve(options)
        for work in resolved.work:
            for intent in work.intents:
                for facts in (live(), Facts(exists=False)):
                    evaluate(intent.evaluate, facts)
    except InputError as error:
        check_problems(error)
    for problem in validate([str(folder)], ResolveOptions((), env={})):
        assert problem.place is not None


def evaluate(function: object, facts: Facts) -> None:
    assert callable(function)
    try:
        function(facts)
    except (Need, NoAssetError):
        pass
    except InputError as error:
        check_problems(error)


def check_problems(error: InputError) -> None:
    assert error.problems
    assert all(problem.place is not None and problem.message for problem in error.problems)
    assert "secret" not in str(error).replace(
        "secrets", ""
    )  # a key of the settings, which remedies name


MUTATED = settings(
    max_examples=examples(200, fast=8), deadline=None, suppress_health_check=list(HealthCheck)
)
WHOLE = (CASES / "language" / "whole.yml").read_text(encoding="utf-8")
PLAYBOOKS = st.one_of(
    mutated(PLAYBOOK), token_mutated(PLAYBOOK), mutated(WHOLE), token_mutated(WHOLE)
)
INVENTORIES = st.one_of(mutated(INVENTORY), token_mutated(INVENTORY))
SETTINGS = (CASES / "playbook" / "settings.toml").read_text(
    encoding="utf-8"
) + '[lookup]\nfolders = ["traffic"]\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("mutated")
    for path in (CASES / "language").iterdir():
        (made / path.name).write_bytes(path.read_bytes())
    (made / "whole.yml").unlink()
    return made


@MUTATED
@given(text=PLAYBOOKS)
def test_playbooks(text: str, folder: Path) -> None:
    check(text, INVENTORY, folder)


@pytest.mark.scale
@MUTATED
@given(text=INVENTORIES)
def test_inventories(text: str, folder: Path) -> None:
    check(PLAYBOOK, text, folder)


@MUTATED
@given(text=st.one_of(mutated(SETTINGS), token_mutated(SETTINGS)))
def test_settings(text: str, folder: Path) -> None:
    path = folder / "msauto.toml"
    path.write_text(text, encoding="utf-8", errors="replace", newline="")
    try:
        load_settings(path)
    except InputError as error:
        check_problems(error)
    finally:
        path.unlink()


@pytest.mark.scale
@MUTATED
@given(
    text=st.one_of(
        mutated("{{ asset.title | upper }}"),
        mutated("{% for m in asset.markers %}{{ m.at }}{% endfor %}"),
    )
)
def test_templates(text: str, folder: Path) -> None:
    check(
        json.dumps(
            [{"hosts": "all", "tasks": [{"asset": {"title": "A", "fields": {"comment": text}}}]}]
        ),
        INVENTORY,
        folder,
    )


@MUTATED
@given(data=st.binary(max_size=200))
def test_garbage(data: bytes, folder: Path) -> None:
    (folder / "p.yml").write_bytes(data)
    for problem in validate([str(folder / "p.yml")], ResolveOptions((), env={})):
        assert problem.place is not None
