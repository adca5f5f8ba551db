"""What travels to workers, and what stays with the command: its environment and its files."""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml

from msauto.api.workplace import never_frozen
from msauto.applying.executor import BatchFailures
from msauto.circuit_breaker import BreakerState
from msauto.errors import LedgerError, SourceLocation
from msauto.model.desired import Intent
from msauto.model.facts import Facts
from msauto.model.ledger_url import LedgerUrl, PasswordSource
from msauto.model.plan import Plan
from msauto.model.server import ServerSpec
from msauto.playbook.hosts import ResolveOptions
from msauto.playbook.input_files import LookupContext
from msauto.playbook.resolve import resolve
from msauto.playbook.templates.names import TemplateFunctionError
from msauto.plugins.dask import cluster
from msauto.plugins.dask.cluster import Parcel, WorkerTask
from msauto.plugins.dask.workplace import Belongings, ServerApplying, SharedRun, apply_on_worker
from msauto.secrets.commands import SecretCommand, SecretCommands
from msauto.secrets.redaction import Secrets
from tests.entries import listed_entry

FACTS = Facts(entry=listed_entry((), "EP1"))


async def no_hash(_: str) -> None:
    return None


NO_SECRETS = SecretCommands()


class Travel:
    """Packs the intents of one task, and unpacks them where only questions lead to the machine of the command."""

    def __init__(
        self,
        folder: Path,
        comment: str,
        env: dict[str, str],
        secrets: SecretCommands = NO_SECRETS,
        **variables: object,
    ) -> None:
        inventory = {
            "all": {
                "hosts": {
                    "studio": {"server": {"url": "http://studio"}, "database": "NEWS", **variables}
                }
            }
        }
        task = {"name": "t", "asset": {"select": {"folder": "/"}, "fields": {"comment": comment}}}
        (folder / "msauto.toml").touch()
        (folder / "inventory.yml").write_text(yaml.safe_dump(inventory))
        play = {
            "name": "p",
            "hosts": "all",
            **({"roles": ["films"]} if (folder / "roles").exists() else {"tasks": [task]}),
        }
        (folder / "play.yml").write_text(yaml.safe_dump([play]))
        self.resolved = resolve(
            ResolveOptions(
                (str(folder / "play.yml"),),
                (str(folder / "inventory.yml"),),
                env=env,
                now=datetime.now(UTC),
                secrets=secrets,
            )
        )
        self.belongings = Belongings(no_hash)
        self.parcel = Parcel(
            (self.resolved.work[0], self.resolved.secrets), self.belongings.reducers
        )
        self.asked: list[Any] = []

    def ask(self, question: tuple[Any, ...]) -> object:
        self.asked.append(question)
        return asyncio.run(self.belongings.answer(question))

    def comment(self) -> str:
        intent: Intent = self.parcel.open()[0].intents[0]
        return str(cast("Any", intent.evaluate(FACTS)).parts["field"]["comment"].value)


@pytest.fixture(autouse=True)
def _asked_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "ask", lambda question: TRAVELS[-1].ask(question))


TRAVELS: list[Travel] = []


def travel(*values: Any, **variables: Any) -> Travel:
    TRAVELS.append(Travel(*values, **variables))
    return TRAVELS[-1]


def test_an_intent_gives_the_same_there(tmp_path: Path) -> None:
    there = travel(
        tmp_path, "{{ house }} {{ hostvars.studio.database }} {{ asset.title }}", {}, house="K5"
    )
    assert there.comment() == "K5 NEWS EP1"
    assert there.asked == []


def test_the_environment_stays_here_and_a_variable_that_is_used_is_asked_for(
    tmp_path: Path,
) -> None:
    text = "{{ asset.title }} {{ env.TAG }} {{ lookup('env', 'NO', default='-') }}"
    there = travel(tmp_path, text, {"TAG": "tonight-7", "OTHER": "canary-8"})
    assert there.comment() == "EP1 tonight-7 -"
    assert there.asked == [("env", "TAG"), ("env", "NO")]
    assert b"canary-8" not in there.parcel._data


def test_a_secret_command_runs_here_and_the_secret_is_known_there(tmp_path: Path) -> None:
    command = SecretCommand(
        (sys.executable, "-c", "print('tok-5521')"), str(tmp_path), SourceLocation("msauto.toml")
    )
    text = "{{ asset.title }} {{ lookup('secret', 'token') }}"
    there = travel(tmp_path, text, {}, SecretCommands({"token": command}, allowed=True))
    assert there.comment() == "EP1 tok-5521"
    assert there.asked == [(LookupContext.secret, 0, "token")]
    assert b"print(" not in there.parcel._data


def test_a_file_is_asked_for_and_one_outside_the_repository_refused(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("from a file\n")
    there = travel(tmp_path, "{{ asset.title }} {{ lookup('file', 'note.txt') }}", {})
    assert there.comment() == "EP1 from a file"
    (tmp_path / "out").symlink_to("/etc/hostname")
    with pytest.raises(TemplateFunctionError, match="outside the playbook's repository"):
        there.ask((LookupContext.content, 0, "out"))


def test_where_a_download_goes_is_decided_here(tmp_path: Path) -> None:
    there = travel(tmp_path, "{{ asset.title }}", {})
    task: Any = there.parcel.open()[0].intents[0].evaluate
    assert task.scope.surroundings.dest("still.png", task.node) == str(tmp_path / "still.png")
    assert there.asked == [(LookupContext.written, 0, "still.png")]
    with pytest.raises(TemplateFunctionError, match="outside"):
        there.ask((LookupContext.written, 0, "../still.png"))


def test_a_file_of_a_role_is_the_one_that_is_sent(tmp_path: Path) -> None:
    for part in ("tasks", "files"):
        (tmp_path / "roles" / "films" / part).mkdir(parents=True)
    comment = "{{ asset.title }} {{ lookup('file', 'note.txt') }}"
    task = {"asset": {"select": {"folder": "/"}, "fields": {"comment": comment}}}
    (tmp_path / "roles/films/tasks/main.yml").write_text(yaml.safe_dump([task]))
    (tmp_path / "roles/films/files/note.txt").write_text("from the role\n")
    (tmp_path / "note.txt").write_text("from a file\n")
    assert travel(tmp_path, "", {}).comment() == "EP1 from the role"


def test_a_secret_in_a_file_is_found_there(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("the key is hunter2-canary\n")
    text = "{{ asset.title }} {{ lookup('file', 'note.txt') }}"
    there = travel(tmp_path, text, {"KEY": "hunter2-canary"}, key="{{ env.KEY | secret }}")
    assert there.comment() == "EP1 the key is hunter2-canary"


def test_a_worker_that_cannot_open_the_ledger_is_named(tmp_path: Path) -> None:
    missing = PasswordSource("file", str(tmp_path / "password"))
    place = LedgerUrl("postgresql:///ledger?host=/nowhere", missing)
    shared = SharedRun("run-1", place, 1, [], Secrets(), 8, never_frozen)
    server = ServerSpec("studio-a", "http://a.example")
    given = ServerApplying(shared, server, {}, BatchFailures(Plan("", ""), 0), BreakerState())
    task = cast("WorkerTask", SimpleNamespace(worker="worker-7"))
    with pytest.raises(
        LedgerError, match="the Dask worker worker-7 cannot open the ledger: the password"
    ) as caught:
        asyncio.run(apply_on_worker(given, task))
    assert caught.value.remedy in caught.value.message
