"""Memories keep hashes in place of secrets: the same secret is known again, another is not, and none is kept."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from msauto.ledger.ledger import Ledger
from msauto.model.plan import TargetId
from msauto.model.ports import Remembered
from msauto.model.snapshot import Json
from msauto.secrets.redacted_plans import SALT, SecretMemory
from msauto.secrets.redaction import Secrets

TARGET = TargetId("studio", "NEWS", "asset", "EP001")
TOKEN = "tok-1234"


class Kept:
    """A memory in this process."""

    def __init__(self) -> None:
        self.items: dict[TargetId, dict[str, Json]] = {}

    def recall(self, target: TargetId) -> Mapping[str, Json]:
        return self.items.get(target, {})

    def remember(self, target: TargetId, items: Mapping[str, Json]) -> None:
        self.items.setdefault(target, {}).update(items)

    def forget_assets(self, server: str, database: str, prefix: str) -> None:
        raise NotImplementedError

    def pending(self, server: str) -> frozenset[tuple[str, str]]:
        return frozenset({(server, "x")})

    def records(self, target: TargetId, titles: Iterable[str] = ()) -> Sequence[Remembered]:
        raise NotImplementedError

    def keep_clip(self, kept: TargetId, now: TargetId, run: str, seen: Mapping[str, str]) -> None:
        raise NotImplementedError

    def forget_clip(self, kept: TargetId) -> None:
        raise NotImplementedError

    def clips_of(self, server: str, database: str, title: str) -> Sequence[Remembered]:
        raise NotImplementedError


def memory(kept: Kept, *texts: str) -> SecretMemory:
    kept.items.setdefault(SALT, {"salt": "00" * 16})
    return SecretMemory(kept, Secrets(texts))


VALUES: list[Json] = [
    TOKEN,
    ["news", TOKEN],
    {"content": {"title": TOKEN, "link": None}, "seen": True},
    {"asked": {"params": {"headline": TOKEN}, "w": 320}},
    "plain",
    None,
    True,
]


@pytest.mark.parametrize("value", VALUES)
def test_what_is_remembered_is_recalled_by_who_knows_the_secret(value: Json) -> None:
    kept = Kept()
    memory(kept, TOKEN).remember(TARGET, {"field:comment": value})
    assert TOKEN not in str(kept.items)
    assert dict(memory(kept, TOKEN, "tok-other").recall(TARGET)) == {"field:comment": value}


def test_who_does_not_know_it_sees_nothing_of_it() -> None:
    kept = Kept()
    items: dict[str, Json] = {
        "a": TOKEN,
        "b": ["x", TOKEN],
        "c": {"k": TOKEN, "n": 1},
        "d": "plain",
    }
    memory(kept, TOKEN).remember(TARGET, items)
    assert dict(memory(kept, "tok-other").recall(TARGET)) == {"d": "plain"}


def test_a_text_with_a_secret_in_it_is_not_kept() -> None:
    kept = Kept()
    part: Json = {"request": "/a?param=h:tok%201234%2Fx"}
    memory(kept, "tok 1234/x").remember(TARGET, {"part": part, "a": "<tok 1234/x>"})
    assert "1234" not in str(kept.items)
    assert memory(kept, "tok 1234/x").recall(TARGET) == {}


def test_the_salt_is_the_ledgers_own(tmp_path: Path) -> None:
    found: list[Mapping[str, Json]] = []
    for name in ("first", "second"):
        with Ledger.open(tmp_path / name) as ledger:
            secrets = SecretMemory(ledger.memory(), Secrets([TOKEN]))
            secrets.settle_salt(ledger.journal)
            secrets.remember(TARGET, {"a": TOKEN})
            found += [ledger.memory().recall(SALT), ledger.memory().recall(TARGET)]
    assert found[0] != found[2]
    assert found[1] != found[3]
    assert str(found[1]["a"]).startswith("***{")


def test_two_first_runs_at_once_agree_on_one_salt(tmp_path: Path) -> None:
    """Else what one of them keeps is never known again, and what is to run once runs twice."""

    def second() -> None:
        with Ledger.open(tmp_path) as ledger:
            begun.set()
            assert was_read.wait(10)
            memory = SecretMemory(ledger.memory(), Secrets([TOKEN]))
            memory.settle_salt(ledger.journal)
            memory.remember(TARGET, {"second": TOKEN})

    with Ledger.open(tmp_path) as ledger:
        ledger.memory().remember(TARGET, {"before": "plain"})
    begun, was_read, other = threading.Event(), threading.Event(), threading.Thread(target=second)
    with Ledger.open(tmp_path) as ledger:
        memory = SecretMemory(ledger.memory(), Secrets([TOKEN]))
        other.start()
        assert begun.wait(10)
        with ledger.journal.together():
            assert not ledger.memory().recall(SALT)
            was_read.set()
            other.join(0.3)  # long enough to look as well, were it not made to wait
            memory.settle_salt(ledger.journal)
        memory.remember(TARGET, {"first": TOKEN})
        other.join(20)
        again = SecretMemory(ledger.memory(), Secrets([TOKEN])).recall(TARGET)
    assert again == {"before": "plain", "first": TOKEN, "second": TOKEN}


def test_without_secrets_nothing_changes() -> None:
    kept = Kept()
    memory = SecretMemory(kept, Secrets())
    memory.remember(TARGET, {"a": "b"})
    assert kept.items == {TARGET: {"a": "b"}}
    assert memory.recall(TARGET) == {"a": "b"}
    assert memory.pending("studio") == {("studio", "x")}
