"""Authentication in inventories: secrets from files and the keyring, proxies, keys of certificates."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from msauto.errors import InputError
from msauto.model.server import Auth, Secret, ServerSpec, Tls
from msauto.playbook.inventory.hosts import ResolveOptions, named_servers
from msauto.playbook.validate import validate


def server(folder: Path, **block: Any) -> ServerSpec:
    path = write(folder, **block)
    (found,) = named_servers(ResolveOptions(playbooks=(), inventories=(path,), env={"PASSWORD": "hunter2"}))
    return found.spec


def write(folder: Path, **block: Any) -> str:
    hosts = {"studio": {"server": {"url": "http://h", **block}}}
    (folder / "inventory.yml").write_text(yaml.safe_dump({"all": {"hosts": hosts}}, allow_unicode=True))
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
    assert server(tmp_path, auth={"bearer_file": "secrets/ops"}).auth == Auth(bearer=Secret(" hünter2 "))
    absolute = str(tmp_path / "secrets" / "ops")
    assert server(tmp_path, auth={"bearer_file": absolute}).auth == Auth(bearer=Secret(" hünter2 "))


@pytest.mark.parametrize(
    ("content", "told"),
    [(None, "cannot read"), (b"", "is empty"), (b"\n", "is empty"), (b"\xff\xfe", "UTF-8"), (b"x" * 70000, "large")],
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
    assert server(tmp_path, auth={"bearer_keyring": "msauto"}).auth == Auth(bearer=Secret("msauto/studio"))


def test_keyring_without_the_entry_or_locked(tmp_path: Path, keyring: Any) -> None:
    keyring(lambda service, user: None)
    assert "keyring set msauto studio" in problem(tmp_path, auth={"bearer_keyring": "msauto"})

    def locked(service: str, user: str) -> str:
        raise RuntimeError("hunter2")

    keyring(locked)
    assert "cannot read the system keyring (RuntimeError)" in problem(tmp_path, auth={"bearer_keyring": "msauto"})


def test_keyring_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    assert "pip install 'msauto[keyring]'" in problem(tmp_path, auth={"bearer_keyring": "msauto"})


def test_validate_asks_for_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    path = write(tmp_path, auth={"basic": {"username": "u", "password_keyring": "x"}})
    assert validate([path], ResolveOptions(playbooks=(), inventories=(), env={})) == []


@pytest.mark.parametrize(
    ("block", "told"),
    [
        ({"auth": {"basic": {"username": "u"}}}, "has no password"),
        ({"auth": {"basic": {"username": "u", "password": "p", "password_file": "f"}}}, "password and password_file"),
        ({"auth": {"bearer": "b", "bearer_file": "f"}}, "bearer and bearer_file"),
        ({"auth": {"basic": {"username": "u", "password": "p"}, "bearer_keyring": "k"}}, "basic and bearer_keyring"),
        ({"auth": "me"}, "mapping"),
        ({"tls": {"key_password": 1}}, "text"),
    ],
)
def test_what_cannot_be(tmp_path: Path, block: dict[str, Any], told: str) -> None:
    assert told in problem(tmp_path, **block)


def test_key_password(tmp_path: Path) -> None:
    spec = server(tmp_path, tls={"cert": "own.pem", "key_password": "{{ env.PASSWORD }}"})
    assert spec.tls == Tls(cert=str(tmp_path / "own.pem"), key_password=Secret("hunter2"))
    assert "hunter2" not in repr(spec)
