"""Secrets that commands print: what runs, with whose consent, and what is reported. The programs are small and real."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from msauto.errors import InputError, Problem, RefusedError
from msauto.model.desired import ResolvedPlaybooks
from msauto.model.facts import Facts
from msauto.playbook.hosts import ResolveOptions, named_servers
from msauto.playbook.resolve import resolve
from msauto.playbook.settings import load_settings
from msauto.playbook.validate import validate
from msauto.secrets.commands import SecretCommands
from tests.tables import table

COUNT = "open('ran', 'a').write('x')"
"""A command runs beside the settings, and leaves a mark there."""


class Repository:
    """A repository whose settings declare ``token`` and ``ops``, each printed by Python."""

    def __init__(
        self, folder: Path, token: str = "print('$HOME tok-5521')", **settings: Any
    ) -> None:
        self.folder = folder
        programs = {"token": token, "ops": "print('pw-ops-77')"}
        lines = (
            f"{name} = {{command = {json.dumps([sys.executable, '-c', f'{COUNT}; {program}'])}}}"
            for name, program in programs.items()
        )
        (folder / "msauto.toml").write_text("[secrets]\n" + "\n".join(lines) + "\n")
        self.write("fields: {comment: 'card {{ token }}', user_1: '{{ token }}'}")
        self.settings = load_settings(folder / "msauto.toml")
        self.secrets = SecretCommands(self.settings.secrets, **{"allowed": True, **settings})

    def write(
        self, wanted: str, token: str = "!secret {name: token}", auth: str = "bearer_secret: ops"
    ) -> None:
        server = f"{{url: 'http://h', auth: {{{auth}}}}}"
        hosts = f"all: {{hosts: {{a: {{server: {server}, database: N, token: {token}}}}}}}\n"
        (self.folder / "i.yml").write_text(hosts)
        (self.folder / "p.yml").write_text(
            f"- hosts: all\n  tasks:\n    - asset: {{title: A, {wanted}}}\n"
        )

    @property
    def options(self) -> ResolveOptions:
        paths = (str(self.folder / "p.yml"),), (str(self.folder / "i.yml"),)
        return ResolveOptions(*paths, env={}, secrets=self.secrets)

    def resolve(self) -> ResolvedPlaybooks:
        return resolve(self.options)

    def problem(self) -> Problem:
        with pytest.raises(InputError) as caught:
            self.resolve()
        (problem,) = {each.message: each for each in caught.value.problems}.values()
        return problem

    @property
    def runs(self) -> int:
        ran = self.folder / "ran"
        return len(ran.read_text()) if ran.exists() else 0


def fields(resolved: ResolvedPlaybooks) -> dict[str, str]:
    desired: Any = resolved.work[0].intents[0].evaluate(Facts())
    return {name: str(each.value) for name, each in desired.parts["field"].items()}


def test_a_command_prints_a_value_and_a_password_without_a_shell(tmp_path: Path) -> None:
    resolved = Repository(tmp_path).resolve()
    assert fields(resolved) == {"comment": "card $HOME tok-5521", "user_1": "$HOME tok-5521"}
    bearer = resolved.work[0].server.auth.bearer
    assert bearer is not None
    assert bearer.reveal() == "pw-ops-77"
    assert resolved.secrets.redact("$HOME tok-5521, pw-ops-77") == "***, ***"


def test_a_command_runs_once_a_run(tmp_path: Path) -> None:
    repository = Repository(tmp_path, token="raise SystemExit(3)")
    for _ in range(2):
        with pytest.raises(InputError):
            repository.resolve()
        named_servers(repository.options)
    assert repository.runs == 2  # ops, and token in vain


def test_a_template_that_fails_is_an_error_and_never_a_stand_in(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    repository.write(
        "fields: {user_1: '{{ (token | from_json).deep }}'}", auth="bearer: !secret {name: ops}"
    )
    assert (
        repository.problem().message
        == "the template fails; it uses a secret, so the reason is not shown"
    )
    with pytest.raises(RefusedError):
        resolve(
            structs.replace(repository.options, secrets=SecretCommands(repository.settings.secrets))
        )


def test_without_consent_nothing_runs_and_the_refusal_names_secret_place_and_flag(
    tmp_path: Path,
) -> None:
    repository = Repository(tmp_path, allowed=False)
    repository.write("fields: {comment: '{{ asset.title }} {{ token }}'}", auth="")
    for each in (
        repository,
        Repository(tmp_path, allowed=False),
    ):  # with a secret value, and a secret password
        with pytest.raises(
            RefusedError, match=r"the secret '\w+' \(.*msauto.toml:[23]:1\) .*not allowed"
        ) as caught:
            each.resolve()
        assert caught.value.remedy.endswith("--secret-commands, or MSAUTO_SECRET_COMMANDS=1")
    assert repository.runs == 0


def test_validate_runs_none_and_tells_what_is_wrong(tmp_path: Path) -> None:
    repository = Repository(tmp_path)

    def problems(*given: str, **more: str) -> list[tuple[str, str]]:
        repository.write(*given, **more)
        found = validate([str(tmp_path)], ResolveOptions((), secrets=secrets))
        return [(problem.message, problem.remedy) for problem in found if problem.level == "error"]

    secrets = repository.secrets
    assert (
        problems("fields: {comment: '{{ token }}', user_1: '{{ (token | from_json).deep }}'}") == []
    )
    assert problems(
        "fields: {comment: x}", "!secret {name: toke}", "basic: {username: u, password_secret: op}"
    ) == [("unknown secret 'op'", "did you mean 'ops'?")]
    assert (
        problems("fields: {comment: '{{ token }}'}", "!secret {name: toke}")[0][0]
        == "unknown secret 'toke'"
    )
    assert problems("folder: !secret {name: token}")[0][0].startswith(
        "a secret is not allowed here"
    )
    assert problems("fields: {comment: !secret {nam: token}}")[0][0].startswith(
        "!secret marks a text, or names"
    )
    assert repository.runs == 0


@table("playbook/secret_commands_that_fail", "program", "told")
def test_a_command_that_gives_no_secret(
    tmp_path: Path, program: str, told: str, capfd: pytest.CaptureFixture[str]
) -> None:
    problem = Repository(tmp_path, program, seconds=2).problem()
    assert told in problem.message
    assert problem.kind == ("template" if "characters" in told else "secret")
    assert problem.remedy
    assert "hunter2" not in f"{problem}{capfd.readouterr()}"


def test_a_program_that_cannot_be_started(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    settings = tmp_path / "msauto.toml"
    for command, told in (
        (["no-such-program"], "'no-such-program' cannot be started: No such file"),
        (["./msauto.toml"], "denied"),
    ):
        settings.write_text(f"[secrets.token]\ncommand = {json.dumps(command)}\n")
        repository.secrets = SecretCommands(load_settings(settings).secrets, allowed=True)
        repository.write("fields: {comment: '{{ token }}'}", auth="")
        assert told in repository.problem().message


def test_what_a_lookup_reads_names_no_secret(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    (tmp_path / "more.yml").write_text("token: !secret {name: token}\n")
    repository.write("fields: {comment: \"{{ lookup('yaml', 'more.yml').token }}\"}", auth="")
    assert "names a secret" in repository.problem().message


def test_a_file_that_ansible_vault_has_encrypted_is_recognized(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars" / "all.yml").write_text("$ANSIBLE_VAULT;1.1;AES256\n6133\n")
    problem = repository.problem()
    assert "encrypted with ansible-vault" in problem.message
    assert '{command = ["ansible-vault", "view", ' in problem.remedy


def test_only_an_encrypted_file_that_a_playbook_reads_is_an_error(tmp_path: Path) -> None:
    for name in ("alone", "named", "read"):
        (tmp_path / f"{name}.yml").write_text("$ANSIBLE_VAULT;1.1;AES256\n6133\n")
    (tmp_path / "p.yml").write_text(
        "- hosts: all\n  vars_files: [read.yml]\n  tasks: [{asset: {title: A}}]\n"
    )
    (tmp_path / "i.yml").write_text("all: {hosts: {a: {server: {url: 'http://h'}, database: N}}}\n")
    (tmp_path / "msauto.toml").write_text(
        '[secrets]\ntoken = {command = ["ansible-vault", "view", "named.yml"]}\n'
    )
    secrets = SecretCommands(load_settings(tmp_path / "msauto.toml").secrets)
    alone, read = validate([str(tmp_path)], ResolveOptions((), secrets=secrets))
    assert (alone.level, alone.message) == (
        "warning",
        f"msauto does not read: {tmp_path / 'alone.yml'}",
    )
    assert (read.level, "encrypted with ansible-vault" in read.message) == ("error", True)
