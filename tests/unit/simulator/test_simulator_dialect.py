"""The dialect's switches as values; that each is looked at is shown where its subject is tested."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from msauto.simulator import SimDialect, Simulator
from tests.unit.simulator.asking import Asker, asset


def test_the_first_choice_is_the_default() -> None:
    defaults = SimDialect()
    for key, choices in SimDialect.choices().items():
        if choices:
            assert getattr(defaults, key) == choices[0]


def test_parse() -> None:
    dialect = SimDialect.parse(["segment_update=overwrite", "list_separator==", "auth = basic".replace(" ", "")])
    assert (dialect.segment_update, dialect.list_separator, dialect.auth) == ("overwrite", "=", "basic")
    assert SimDialect.parse([]) == SimDialect()
    assert dialect.with_values({"auth": "none"}).segment_update == "overwrite"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("segment_update=explode", "refuse, overwrite, duplicate, ignore"),
        ("no_such=1", "segment_update"),
        ("segment_update", "key=value"),
        ("line_limit=many", "bytes"),
        ("list_separator=", "empty"),
    ],
)
def test_a_wrong_switch_names_the_choices(text: str, names: str) -> None:
    with pytest.raises(ValueError, match=re.escape(names)):
        SimDialect.parse([text])


def test_every_switch_is_described() -> None:
    assert [entry.name for entry in fields(SimDialect) if not entry.metadata["description"]] == []


def test_every_switch_is_looked_at_and_tested() -> None:
    package = Path(__file__).resolve().parents[3] / "msauto" / "simulator"
    source = "".join(path.read_text(encoding="utf-8") for path in package.rglob("*.py") if path.name != "dialect.py")
    tests = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    for key, choices in SimDialect.choices().items():
        assert f"dialect.{key}" in source, key
        assert f"{key}=" in tests, key
        for choice in choices[1:]:
            assert f'"{choice}"' in tests, f"{key}={choice}"


@pytest.mark.parametrize(
    ("dialect", "headers", "status"),
    [
        (SimDialect(auth="basic"), {}, 401),
        (SimDialect(auth="basic"), {"Authorization": "Basic b3BzOnNlY3JldA=="}, 200),
        (SimDialect(auth="basic", auth_secret="x:y"), {"Authorization": "Basic b3BzOng6eQ=="}, 200),
        (SimDialect(auth="bearer", auth_secret="t"), {"Authorization": "Bearer t"}, 200),
        (SimDialect(auth="bearer", auth_secret="t"), {"Authorization": "Bearer T"}, 401),
        (SimDialect(auth="header", auth_secret="k"), {"X_Auth_Token": "k"}, 200),
        (SimDialect(auth="header", auth_secret="k"), {"X_Auth_Token": "no"}, 401),
    ],
)
def test_authentication(sim: Simulator, ask: Asker, dialect: SimDialect, headers: dict[str, str], status: int) -> None:
    sim.dialect = dialect
    assert ask.ask("DELETE", asset("Promo 2"), None, **headers).status == status
    sim.dialect = SimDialect()
    assert ask.get(asset("Promo 2")).status == (404 if status == 200 else 200)


def test_a_challenge_names_the_scheme(sim: Simulator, ask: Asker) -> None:
    sim.dialect = SimDialect(auth="basic")
    assert ask.get("/rss").headers["www-authenticate"].startswith("Basic")
    sim.dialect = SimDialect(auth="bearer")
    assert ask.get("/rss").headers["www-authenticate"] == "Bearer"
