"""What travels to workers: secrets as references with a check, no environment, no file."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from xml.sax.saxutils import escape

import pytest
import yaml

from msauto.interface.address import encode
from msauto.model.desired import ResolvedPlaybooks, TaskSource
from msauto.model.facts import Facts
from msauto.model.live import Entry
from msauto.model.plan import Body, Change, Expectation, Request, Target
from msauto.playbook.resolve import ResolveOptions, resolve
from msauto.running.parcels import Parcel, SharedValues, UnresolvedError, pack, unpack
from msauto.secrets.redaction import Secrets
from msauto.secrets.secret_sources import SecretReference
from msauto.slices.contents import TOKEN_PATTERN, RunContents
from msauto.slices.remote_server import CoordinatorNeeded

ENTRY = Entry((), "EP1")


def resolved(folder: Path, comment: str, env: dict[str, str], **variables: object) -> ResolvedPlaybooks:
    inventory = {"all": {"hosts": {"studio": {"server": {"url": "http://studio"}, "database": "NEWS", **variables}}}}
    task = {"name": "t", "asset": {"select": {"folder": "/"}, "fields": {"comment": comment}}}
    (folder / "inventory.yml").write_text(yaml.safe_dump(inventory))
    text = yaml.safe_dump([{"name": "p", "hosts": "all", "tasks": [task]}])
    (folder / "play.yml").write_text(text)
    return resolve(
        ResolveOptions((str(folder / "play.yml"),), (str(folder / "inventory.yml"),), env=env, now=datetime.now(UTC))
    )


class Travel:
    """Packs intents as the Dask runner does, and unpacks them."""

    def __init__(self, playbooks: ResolvedPlaybooks) -> None:
        self.intents = playbooks.work[0].intents
        self.secrets = playbooks.secrets
        self.contents = RunContents(playbooks.secrets)
        self.known = SharedValues()
        self.bytes = b""

    def evaluated(self, facts: Facts) -> str:
        parcel, used = pack((self.intents, self.secrets), self.contents, self.known)
        shared: dict[int, Parcel] = {}
        while missing := used - set(shared):
            for number in missing:
                shared[number], more = pack(self.known[number].value, self.contents, self.known)
                used = used | more
        self.bytes = b"".join(each.data for each in (parcel, *shared.values()))
        (intent,), _ = unpack(parcel, shared)
        return str(intent.evaluate(facts).fields["comment"].value)


def test_an_intent_gives_the_same_there(tmp_path: Path) -> None:
    travel = Travel(resolved(tmp_path, "{{ house }} {{ hostvars.studio.database }} {{ asset.title }}", {}, house="K5"))
    assert travel.evaluated(Facts(entry=ENTRY)) == "K5 NEWS EP1"


def test_the_environment_stays_here_and_a_variable_that_is_used_follows(tmp_path: Path) -> None:
    travel = Travel(resolved(tmp_path, "{{ env.TAG }} {{ asset.title }}", {"TAG": "tonight-7", "OTHER": "canary-8"}))
    with pytest.raises(CoordinatorNeeded) as needed:
        travel.evaluated(Facts(entry=ENTRY))
    assert b"tonight-7" not in travel.bytes
    travel.contents.supply(needed.value.key)
    with pytest.raises(UnresolvedError) as unresolved:  # this process has no such variable
        travel.evaluated(Facts(entry=ENTRY))
    assert b"tonight-7" not in travel.bytes
    assert travel.contents.supply(unresolved.value.key)
    assert travel.evaluated(Facts(entry=ENTRY)) == "tonight-7 EP1"
    assert b"canary-8" not in travel.bytes


@pytest.mark.parametrize("there", ["hunter2-canary", "another-secret", None])
def test_a_secret_is_sent_only_where_the_worker_lacks_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: str | None
) -> None:
    secret = "hunter2-canary"
    travel = Travel(resolved(tmp_path, "{{ key }} {{ asset.title }}", {"KEY": secret}, key="{{ env.KEY | secret }}"))
    if there is not None:
        monkeypatch.setenv("KEY", there)
    sent = False
    for _ in range(3):  # what is lacking is sent: the variable that is used, or the value of a reference
        try:
            assert travel.evaluated(Facts(entry=ENTRY)) == f"{secret} EP1"
            break
        except (CoordinatorNeeded, UnresolvedError) as lacking:
            assert sent or secret.encode() not in travel.bytes
            sent = travel.contents.supply(lacking.key) or sent
    assert (sent, secret.encode() in travel.bytes) == (there != secret, there != secret)


def test_a_line_of_the_playbook_travels_without_its_secret(tmp_path: Path) -> None:
    (tmp_path / "vars.yml").write_text("key: !secret hunter2-canary\n")
    inventory = {"all": {"hosts": {"studio": {"server": {"url": "http://studio"}, "database": "NEWS"}}}}
    (tmp_path / "inventory.yml").write_text(yaml.safe_dump(inventory))
    task = '{name: t, asset: {select: {folder: /}, fields: {comment: "{{ key }} {{ asset.title }}"}}}'
    (tmp_path / "play.yml").write_text(f"- {{name: p, hosts: all, vars_files: [vars.yml], tasks: [{task}]}}\n")
    options = ResolveOptions(
        (str(tmp_path / "play.yml"),), (str(tmp_path / "inventory.yml"),), env={}, now=datetime.now(UTC)
    )
    travel = Travel(resolve(options))
    assert travel.evaluated(Facts(entry=ENTRY)) == "hunter2-canary EP1"
    assert not re.search(rb"hunter2", travel.bytes), "the worker reads the file itself"


def test_the_requests_of_a_target_travel_without_their_secrets() -> None:
    secret = "hunter2 & canary"
    place = TaskSource("play.yml", 1, 1, "t")
    requests = (
        Request("POST", f"/storage?val={encode(secret)}", (0,), expect=(Expectation("field", "comment", secret),)),
        Request("PUT", "/rss", (0,), body=Body.of(f"<title>{escape(secret)}</title>".encode(), "text/xml")),
    )
    change = Change("change", "field", "comment", "old", f"key {secret}", "live", True, place)
    target = Target("studio", "NEWS", "asset", "EP1", None, "", (change,), requests)
    found = Secrets([secret])
    found.sources.note(secret, SecretReference("env", "MSAUTO_TEST_SECRET"))
    contents = RunContents(found)
    parcel, _ = pack(target, contents)
    assert not found.occurs_in(TOKEN_PATTERN.sub("", parcel.data.decode("latin-1")))
    with pytest.raises(UnresolvedError) as unresolved:
        unpack(parcel)
    contents.supply(unresolved.value.key)
    assert unpack(pack(target, contents)[0]) == target
    assert unpack(pack(target, RunContents(Secrets()))[0]) == target
