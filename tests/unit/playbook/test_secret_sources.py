"""Secrets: where they come from, and that no excerpt of a text that cannot be read shows one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from msauto.cli.commands.vars import report_variables
from msauto.documents.document import Document
from msauto.documents.loader import load_yaml
from msauto.errors import InputError, SourceLocation
from msauto.model.server import Auth, Secret, ServerSpec, Tls
from msauto.playbook.hosts import ResolveOptions, named_servers
from msauto.playbook.settings import load_settings
from msauto.playbook.validate import validate
from msauto.secrets.redaction import SECRET_WORDS, is_secret_name, redact_lines
from tests.tables import CASES, table


def server(folder: Path, **block: Any) -> ServerSpec:
    path = write(folder, **block)
    (found,) = named_servers(
        ResolveOptions(playbooks=(), inventories=(path,), env={"PASSWORD": "hunter2"})
    )
    return found.spec


def write(folder: Path, **block: Any) -> str:
    hosts = {"studio": {"server": {"url": "https://h", **block}}}
    (folder / "inventory.yml").write_text(
        yaml.safe_dump({"all": {"hosts": hosts}}, allow_unicode=True)
    )
    return str(folder / "inventory.yml")


def problem(folder: Path, **block: Any) -> str:
    with pytest.raises(InputError) as caught:
        server(folder, **block)
    assert "hunter2" not in str(caught.value)
    assert len(caught.value.problems) == 1
    return str(caught.value)


@pytest.fixture
def keyring(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[str, str], str | None]], None]:
    def install(answer: Callable[[str, str], str | None]) -> None:
        module = ModuleType("keyring")
        module.get_password = answer  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "keyring", module)

    return install


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_secret_files_lie_beside_the_inventory(tmp_path: Path, end: str) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "ops").write_bytes(f" hünter2 {end}".encode())
    basic = {"username": "ops", "password_file": "secrets/ops"}
    assert server(tmp_path, auth={"basic": basic}).auth == Auth("ops", Secret(" hünter2 "))
    assert server(tmp_path, auth={"bearer_file": "secrets/ops"}).auth == Auth(
        bearer=Secret(" hünter2 ")
    )
    absolute = str(tmp_path / "secrets" / "ops")
    assert server(tmp_path, auth={"bearer_file": absolute}).auth == Auth(bearer=Secret(" hünter2 "))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "cannot read"),
        (b"", "is empty"),
        (b"\n", "is empty"),
        (b"\xff\xfe", "UTF-8"),
        (b"x" * 70000, "large"),
    ],
)
def test_files_that_hold_no_secret(tmp_path: Path, content: bytes | None, told: str) -> None:
    if content is not None:
        (tmp_path / "token").write_bytes(content)
    text = problem(tmp_path, auth={"bearer_file": "token"})
    assert told in text
    assert "  → " in text
    assert "inventory.yml:" in text


def test_folder_is_no_secret_file(tmp_path: Path) -> None:
    assert "cannot read" in problem(tmp_path, auth={"bearer_file": "."})


def test_keyring_is_asked_for_service_and_user(tmp_path: Path, keyring: Any) -> None:
    keyring(lambda service, user: f"{service}/{user}")
    basic = {"username": "ops", "password_keyring": "msauto"}
    assert server(tmp_path, auth={"basic": basic}).auth == Auth("ops", Secret("msauto/ops"))
    assert server(tmp_path, auth={"bearer_keyring": "msauto"}).auth == Auth(
        bearer=Secret("msauto/studio")
    )


def test_keyring_without_the_entry_or_locked(tmp_path: Path, keyring: Any) -> None:
    keyring(lambda service, user: None)
    assert "keyring set msauto studio" in problem(tmp_path, auth={"bearer_keyring": "msauto"})

    def locked(service: str, user: str) -> str:
        raise RuntimeError("hunter2")

    keyring(locked)
    assert "cannot read the system keyring (RuntimeError)" in problem(
        tmp_path, auth={"bearer_keyring": "msauto"}
    )


def test_keyring_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    wrong = problem(tmp_path, auth={"bearer_keyring": "msauto"})
    assert "pip install keyring" in wrong


def test_validate_asks_for_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    path = write(tmp_path, auth={"basic": {"username": "u", "password_keyring": "x"}})
    assert validate([path], ResolveOptions(playbooks=(), inventories=(), env={})) == []


@table("playbook/wrong_secret_sources", "block", "told")
def test_what_cannot_be(tmp_path: Path, block: dict[str, Any], told: str) -> None:
    assert told in problem(tmp_path, **block)


def test_key_password(tmp_path: Path) -> None:
    spec = server(tmp_path, tls={"cert": "own.pem", "key_password": "{{ env.PASSWORD }}"})
    assert spec.tls == Tls(cert=str(tmp_path / "own.pem"), key_password=Secret("hunter2"))
    assert "hunter2" not in repr(spec)


# No excerpt of a text that cannot be read shows a secret, whatever its name and however it is written


NAMES = [
    spelt
    for word in SECRET_WORDS
    for spelt in (
        word,
        word.upper(),
        word.replace("_", "-"),
        f"studio_{word}",
        f"{word}s",
        f"{word}_2",
    )
]
WAYS: list[str] = yaml.safe_load(
    (CASES / "playbook" / "ways_to_write_a_secret.yml").read_text(encoding="utf-8")
)


def excerpts(text: str) -> str:
    """All that could be shown of a text: the excerpt of each of its lines."""
    document = Document("f", lines=redact_lines(tuple(text.split("\n"))))
    return "\n".join(
        document.excerpt(SourceLocation("f", number + 1, 1))
        for number in range(len(document.lines))
    )


@pytest.mark.parametrize("name", NAMES)
def test_no_line_shows_it(name: str) -> None:
    assert is_secret_name(name)
    for text in (way.format(name=name) for way in WAYS):
        assert "hunter" not in excerpts(text)
        with pytest.raises(InputError) as caught:
            load_yaml(f"{text}\nz: [\n@".encode(), "f.yml")
        assert "hunter" not in "".join(f"{each}{each.excerpt}" for each in caught.value.problems), (
            text
        )


def test_what_stands_around_it_is_shown() -> None:
    text = "a: 1\npassword: hunter2\nb: 2\nbypass: 3\npassword_file: p.txt\n- token: hunter2\n  c: 4\n  at: http://u:hunter2@h/"
    shown = excerpts(text)
    assert "hunter2" not in shown
    for part in (
        "a: 1",
        "password: ***",
        "b: 2",
        "bypass: 3",
        "password_file: p.txt",
        "- token: ***",
        "c: 4",
        "@h/",
    ):
        assert part in shown


def test_settings_that_are_no_toml(tmp_path: Path) -> None:
    file = tmp_path / "msauto.toml"
    file.write_text('[state]\nurl = "postgresql://ops:hunter2@db/x" oops\n', encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_settings(file)
    assert "hunter2" not in "".join(f"{each}{each.excerpt}" for each in caught.value.problems)


def test_a_password_in_a_url_of_valid_settings(tmp_path: Path) -> None:
    file = tmp_path / "msauto.toml"
    file.write_text('[state]\nurl_ = "postgresql://ops:hunter2@db/x"\n', encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_settings(file)
    assert "hunter2" not in "".join(f"{each}{each.excerpt}" for each in caught.value.problems)


def test_variables_of_these_names_are_not_told(tmp_path: Path) -> None:
    inventory = tmp_path / "inventory.yml"
    options = ResolveOptions(playbooks=(), inventories=(str(inventory),))
    for name in filter(str.isidentifier, NAMES):
        variables = f"{name}: hunter2, x: {{{name}: hunter2}}"
        inventory.write_text(f"all: {{hosts: {{a: {{{variables}}}}}}}\n", encoding="utf-8")
        assert "hunter2" not in repr(report_variables(options, "a", None)), name
