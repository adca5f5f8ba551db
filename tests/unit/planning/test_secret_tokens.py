"""Memories keep tokens in place of secrets: the same secret is known again, another is not, and none is kept."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from msauto.ledger import Ledger
from msauto.model.plan import Json, TargetId
from msauto.secrets.redaction import TOKEN_PATTERN, Secrets
from msauto.secrets.secret_tokens import SALT, SecretTokenMemory

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


def known(*texts: str) -> Any:
    return Secrets(texts)


VALUES: list[Json] = [
    TOKEN,
    f"Bearer {TOKEN}",
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
    SecretTokenMemory(kept, known(TOKEN)).remember(TARGET, {f"field:{TOKEN}": value})
    assert TOKEN not in str(kept.items)
    again = dict(SecretTokenMemory(kept, known(TOKEN, "tok-other")).recall(TARGET))
    assert again == ({} if value is None else {f"field:{TOKEN}": value})


def test_who_does_not_know_it_sees_nothing_of_it() -> None:
    kept = Kept()
    items: dict[str, Json] = {"a": TOKEN, "b": ["x", TOKEN], "c": {"k": TOKEN, "n": 1}, "d": "plain"}
    SecretTokenMemory(kept, known(TOKEN)).remember(TARGET, items)
    assert dict(SecretTokenMemory(kept, known("tok-other")).recall(TARGET)) == {"c": {"n": 1}, "d": "plain"}


def test_the_salt_is_the_ledgers_own() -> None:
    first, second = Kept(), Kept()
    for kept in (first, second):
        SecretTokenMemory(kept, known(TOKEN)).remember(TARGET, {"a": TOKEN})
    assert first.items[SALT] != second.items[SALT]
    one, other = str(first.items[TARGET]["a"]), str(second.items[TARGET]["a"])
    assert TOKEN_PATTERN.fullmatch(one)
    assert one != other


def test_two_first_runs_at_once_agree_on_one_salt(tmp_path: Path) -> None:
    """Else what one of them keeps is never known again, and what is to run once runs twice."""

    def second() -> None:
        with Ledger.open(tmp_path) as ledger:
            begun.set()
            assert looked.wait(10)
            memory = SecretTokenMemory(ledger.memory, known(TOKEN))
            memory.settle_salt(ledger.journal)
            memory.remember(TARGET, {"second": TOKEN})

    with Ledger.open(tmp_path) as ledger:
        ledger.memory.remember(TARGET, {"before": "plain"})
    begun, looked, other = threading.Event(), threading.Event(), threading.Thread(target=second)
    with Ledger.open(tmp_path) as ledger:
        memory = SecretTokenMemory(ledger.memory, known(TOKEN))
        other.start()
        assert begun.wait(10)
        with ledger.journal.together():
            assert not ledger.memory.recall(SALT)
            looked.set()
            other.join(0.3)  # long enough to look as well, were it not made to wait
            memory.settle_salt(ledger.journal)
        memory.remember(TARGET, {"first": TOKEN})
        other.join(20)
        again = SecretTokenMemory(ledger.memory, known(TOKEN)).recall(TARGET)
    assert again == {"before": "plain", "first": TOKEN, "second": TOKEN}


def test_coded_forms_are_not_kept() -> None:
    kept = Kept()
    SecretTokenMemory(kept, known("tok 1234/x")).remember(TARGET, {"part": {"request": "/a?param=h:tok%201234%2Fx"}})
    assert kept.items[TARGET] == {"part": {"request": "/a?param=h:***"}}


def test_without_secrets_nothing_changes() -> None:
    kept = Kept()
    memory = SecretTokenMemory(kept, known())
    memory.remember(TARGET, {"a": "b"})
    assert kept.items == {TARGET: {"a": "b"}}
    assert memory.recall(TARGET) == {"a": "b"}
    assert memory.pending("studio") == {("studio", "x")}
