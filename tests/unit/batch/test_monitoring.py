"""Monitoring of a batch, against a server of this machine that answers, fails, hangs or does not run."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import socketserver
import subprocess
import sys
import tempfile
from base64 import b64encode
from collections.abc import Callable, Mapping
from io import StringIO
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from msgspec import structs
from prometheus_client.parser import text_string_to_metric_families

from msauto.plugins.batch.batch_command import JournalStream
from msauto.plugins.batch.batch_file import BatchFile, load_batch
from msauto.plugins.batch.batch_result import BatchResult, DifferingTarget, JobResult, SentMessage
from msauto.plugins.batch.monitoring import Message, Monitor, deliver, metrics_text, notify_systemd
from tests.unit.batch.recorder import Recorder, recording

HEAD = 'name: nightly\nschedule: {at: "03:10", tz: Europe/Oslo}\njobs: {news: {playbooks: p.yml}, old: {plan: p}}\n'
ROOT = Path(__file__).parents[3]
RULES = ROOT / "msauto" / "cli" / "skeleton" / "prometheus-rules.yml"
SECRET = "s3cretT0ken"
NEWS = JobResult(
    job="news",
    outcome="failed",
    code=3,
    reason="EP001: failed: the server says no",
    attempts=2,
    started="2026-11-20T02:10:01.000Z",
    ended="2026-11-20T02:12:01.500Z",
    runs=("20261120T021002Z-ab12",),
    summary={"changed": 4, "failed": 1},
    last_success="2026-11-19T02:12:00.000Z",
    drift=(
        DifferingTarget(
            server="s", database="N", kind="asset", name="A", changes=("field comment",)
        ),
    ),
)
RESULT = BatchResult(
    run="20261120T021000Z-cd34",
    batch="nightly",
    file="batch.yml",
    outcome="failed",
    code=3,
    started="2026-11-20T02:10:00.000Z",
    ended="2026-11-20T02:12:02.000Z",
    jobs=(NEWS,),
    earlier=(JobResult(job="old", outcome="ok", code=0, last_success="2026-11-18T02:12:00.000Z"),),
)


@pytest.fixture
def load(tmp_path: Path) -> Callable[[Mapping[str, Any]], BatchFile]:
    def load(keys: Mapping[str, Any]) -> BatchFile:
        path = tmp_path / "batch.yml"
        path.write_text(HEAD + yaml.safe_dump(dict(keys)), encoding="utf-8")
        return load_batch(str(path))

    return load


Load = Callable[[Mapping[str, Any]], BatchFile]


def notify(url: str, *events: str) -> dict[str, Any]:
    return {"notify": [{"to": url, "on": list(events)}]}


# Heartbeat --------------------------------------------------------------------------------------------------------


def test_a_heartbeat_has_a_start_and_an_end_of_one_run(load: Load) -> None:
    with recording() as recorder:
        monitor = Monitor(load({"heartbeat": recorder.url("ping/uuid?create=1")}), {})
        deliveries = [*monitor.started(RESULT.run), *monitor.ended(RESULT)]
    assert deliveries == [SentMessage(kind="heartbeat", to="http://…")] * 2
    (start, nothing), (end, recap) = recorder.requests
    assert recorder.paths == ["/ping/uuid/start", "/ping/uuid/3"]
    queries = [parse_qs(urlsplit(each).query) for each in (start, end)]
    assert queries[0] == queries[1]
    assert re.fullmatch(
        r"[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", queries[0]["rid"][0]
    )
    assert queries[0]["create"] == ["1"]
    assert nothing == ""
    assert "nightly: failed: 1 of 1 job not ok; 4 of 5 targets written" in recap


WRONG = [
    "",
    "nonsense",
    "ftp://127.0.0.1/x",
    "http://[::1",
    "http:///x",
    "http://h:x/",
    f"https://user:{SECRET}℀@host/x",
]


@pytest.mark.parametrize("url", WRONG)
def test_a_heartbeat_needs_http(load: Load, url: str) -> None:
    (sent,) = Monitor(load({"heartbeat": url}), {}).started("r")
    assert sent.error == "the heartbeat is not an http or https URL"
    assert sent.to in {"://…", "ftp://…", "http://…", "https://…"}


@pytest.mark.scale
@pytest.mark.parametrize(
    ("address", "shown"),
    [
        (f"mailto://ops:[{SECRET}@mail.example.org", "mailto://…"),
        (SECRET, "://…"),
        (f"{SECRET}/x?to=http://host", "://…"),
    ],
)
def test_an_address_that_cannot_be_parsed_is_not_shown(
    load: Load, address: str, shown: str
) -> None:
    (sent,) = Monitor(load(notify(address, "failed")), {}).ended(RESULT)
    assert (sent.to, sent.error != "", SECRET in sent.error) == (shown, True, False)


@pytest.mark.parametrize(
    ("kind", "value"),
    [("env", "PING"), ("file", "ping.txt"), ("credential", "ping"), ("keyring", "chat")],
)
def test_secret_addresses(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, value: str
) -> None:
    keys = ModuleType("keyring")
    monkeypatch.setitem(sys.modules, "keyring", keys)
    with recording() as recorder:
        url = recorder.url(f"ping/{SECRET}")
        (tmp_path / "ping.txt").write_text(f"{url}\n", encoding="utf-8")
        (tmp_path / "ping").write_text(url, encoding="utf-8")
        stored = {("chat", "nightly"): url}
        keys.__dict__["get_password"] = lambda service, user: stored.get((service, user))
        env = {"PING": url, "CREDENTIALS_DIRECTORY": str(tmp_path)}
        batch = load({"heartbeat": {kind: value}})
        assert Monitor(batch, env).started("r") == (
            SentMessage(kind="heartbeat", to=f"{kind} {value}"),
        )
        (tmp_path / "ping.txt").unlink()
        (tmp_path / "ping").unlink()
        stored.clear()
        (missing,) = Monitor(batch, {}).started("r")
    assert recorder.paths == [f"/ping/{SECRET}/start"]
    assert re.search("is not set|cannot read the file|has no secret of", missing.error)


@pytest.mark.parametrize("status", [200, 401])
def test_a_heartbeat_with_a_password(load: Load, status: int) -> None:
    with recording(status) as recorder:
        url = recorder.url("ping").replace("://", f"://ops:{SECRET}%40@")
        (sent,) = Monitor(load({"heartbeat": url}), {}).started("r")
        without_password = recorder.url().replace("://", "://ops@")
        Monitor(load({"heartbeat": without_password}), {}).started("r")
    pairs = f"ops:{SECRET}@", "ops:"
    encoded = [b64encode(pair.encode()).decode() for pair in pairs]
    assert recorder.authorization == [f"Basic {text}" for text in encoded]
    assert recorder.paths == ["/ping/start", "/start"]
    assert sent.to == "http://…"
    assert sent.error == ("" if status == 200 else "the answer has the status 401")


def test_a_tagged_address(tmp_path: Path) -> None:
    with recording() as recorder:
        path = tmp_path / "batch.yml"
        path.write_text(f'{HEAD}heartbeat: !secret "{recorder.url(SECRET)}"\n', encoding="utf-8")
        (sent,) = Monitor(load_batch(str(path)), {}).started("r")
    assert sent == SentMessage(kind="heartbeat", to="http://…")
    assert recorder.paths == [f"/{SECRET}/start"]


# What goes wrong --------------------------------------------------------------------------------------------------


def undelivered(
    load: Load, recorder: Recorder, port: int, left: float = 4
) -> tuple[SentMessage, ...]:
    url = f"127.0.0.1:{port}/{SECRET}"
    keys = {"heartbeat": f"http://{url}", "notify": [{"to": f"json://{url}", "on": ["failed"]}]}
    return Monitor(load(keys), {}, left=left).ended(RESULT)


@pytest.mark.scale
def test_a_server_that_answers_with_an_error(load: Load) -> None:
    with recording(500) as recorder:
        heartbeat, notice = undelivered(load, recorder, recorder.port)
    assert heartbeat.error == "the answer has the status 500"
    assert "error=500" in notice.error
    assert SECRET not in f"{heartbeat}{notice}"


def test_a_heartbeat_that_is_redirected_is_not_delivered(load: Load) -> None:
    with recording(302) as recorder:
        (sent,) = Monitor(load({"heartbeat": recorder.url(SECRET)}), {}).started("r")
    assert sent.error == "the answer has the status 302"
    assert recorder.paths == [f"/{SECRET}/start"]


def test_a_server_that_hangs(load: Load) -> None:
    with recording(0) as recorder:
        heartbeat, notice = undelivered(load, recorder, recorder.port, left=0.3)
    assert heartbeat.error
    assert notice.error == "no answer within 0.3 s"
    assert SECRET not in f"{heartbeat}{notice}"


@pytest.mark.scale
def test_a_server_that_is_not_there(load: Load) -> None:
    with recording() as recorder:
        pass
    heartbeat, notice = undelivered(load, recorder, recorder.port)
    assert heartbeat.error.startswith("it cannot be reached: ")
    assert "Connection error" in notice.error
    assert SECRET not in f"{heartbeat}{notice}"


def test_all_messages_together_get_one_time() -> None:
    with recording(0) as recorder:
        messages = [
            Message(SentMessage(kind="notice"), lambda *_: recorder.end.wait()) for _ in range(5)
        ]
        assert {each.error for each in deliver(messages, 0.1)} == {"no answer within 0.1 s"}


# Notices ----------------------------------------------------------------------------------------------------------


@pytest.mark.scale
def test_notices_go_to_those_who_subscribed(load: Load) -> None:
    with recording() as recorder:
        keys = {
            "notify": [
                {"to": recorder.url(name, "json"), "on": [name]}
                for name in ("failed", "changed", "ok")
            ]
        }
        sent = Monitor(load(keys), {}).ended(RESULT)
    assert [(each.kind, each.to, each.events, each.error) for each in sent] == [
        ("notice", "json://…", ("failed",), ""),
        ("notice", "json://…", ("changed",), ""),
    ]
    assert sorted(recorder.paths) == ["/changed", "/failed"]
    message = json.loads(recorder.requests[0][1])
    assert message["title"] == "msauto nightly: failed: 1 of 1 job not ok; 4 of 5 targets written"
    assert "EP001: failed: the server says no" in message["message"]
    assert message["type"] == "failure"


@pytest.mark.scale
def test_a_notice_mentions_nobody_and_has_no_markup(load: Load) -> None:
    hostile = structs.replace(
        RESULT, jobs=(structs.replace(NEWS, reason="by @everyone: <!channel> [x](http://a) <b>"),)
    )
    with recording() as recorder:
        Monitor(load({"notify": [{"to": recorder.url("x", "json"), "on": ["failed"]}]}), {}).ended(
            hostile
        )
    message = json.loads(recorder.requests[0][1])
    assert "by ＠everyone: ＜!channel＞ ［x］(http：//a) ＜b＞" in message["message"]


class _MailServer(socketserver.StreamRequestHandler):
    """Takes one mail, without TLS."""

    lines: ClassVar[list[str]] = []

    def handle(self) -> None:
        self.wfile.write(b"220 mail\r\n")
        is_text = False
        for raw in self.rfile:
            line = raw.decode().rstrip("\r\n")
            self.lines.append(line)
            if is_text and line != ".":
                continue
            is_text = line.upper() == "DATA"
            answer = {"DATA": "354 go on", "QUIT": "221 bye"}.get(line.upper(), "250 ok")
            self.wfile.write(f"{answer}\r\n".encode())


def test_a_mail_needs_no_further_package_and_no_password_goes_in_the_clear(load: Load) -> None:
    _MailServer.lines.clear()
    with socketserver.TCPServer(("127.0.0.1", 0), _MailServer) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_address[1]
        host = f"127.0.0.1:{port}?from=msauto@a.example&to=ops@a.example"
        open_batch = load(notify(f"SMTP://{host}", "failed"))
        (sent,) = Monitor(open_batch, {}).ended(RESULT)
        secret_batch = load(notify(f"smtp://me:{SECRET}@{host}", "failed"))
        (kept,) = Monitor(secret_batch, {}).ended(RESULT)
        server.shutdown()
    assert sent.to == "SMTP://…"
    assert sent.error == ""
    assert "STARTTLS" in kept.error
    received = "\n".join(_MailServer.lines)
    assert "\nTo: ops@a.example\n" in received
    assert "\nSubject: msauto nightly" in received
    assert "AUTH" not in received
    assert SECRET not in received


@pytest.mark.scale
def test_an_address_that_apprise_does_not_know(load: Load) -> None:
    (sent,) = Monitor(load(notify(f"nosuchservice://{SECRET}", "failed")), {}).ended(RESULT)
    assert sent.error == "the address is not a valid Apprise URL"


# Files ------------------------------------------------------------------------------------------------------------


def test_report_files_are_dated_and_old_ones_are_removed(load: Load, tmp_path: Path) -> None:
    folder = tmp_path / "reports"
    folder.mkdir()
    kept = [
        "nightly-2026-11-18T031000.txt",
        "other-2026-01-01T031000.txt",
        "nightly-2026-01-01.txt",
        "notes.md",
    ]
    for name in [*kept, "nightly-2026-11-17T031000.txt", "nightly-2025-11-17T031000.html"]:
        (folder / name).write_text("old", encoding="utf-8")
    forms = ["text", "json", "markdown", "html"]
    batch = load({"reports": {"dir": "reports", "formats": forms, "keep_days": 2}})
    assert not any(each.error for each in Monitor(batch, {}).ended(RESULT))
    written = [f"nightly-2026-11-20T031000.{ending}" for ending in ("txt", "json", "md", "html")]
    assert sorted(each.name for each in folder.iterdir()) == sorted([*kept, *written])


def test_metrics(load: Load, tmp_path: Path) -> None:
    Monitor(load({"metrics": {"file": "msauto.prom"}}), {}).ended(RESULT)
    path = tmp_path / "msauto.prom"
    assert path.stat().st_mode & 0o777 == 0o644, "the node exporter is another user"
    found = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(path.read_text(encoding="utf-8"))
        for sample in family.samples
    }
    news, old = ((("batch", "nightly"), ("batch_job", name)) for name in ("news", "old"))
    assert found["msauto_batch_exit_code", ("batch", "nightly")] == 3
    assert found["msauto_job_ok", *news] == 0
    assert found["msauto_job_ok", *old] == 1
    assert found["msauto_job_last_success_timestamp_seconds", *news] == 1795054320, (
        "that of the night before"
    )
    assert found["msauto_job_duration_seconds", *news] == 120.5
    assert found["msauto_job_drifting_targets", *news] == 1
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []


def test_no_duration_is_negative_when_the_clock_is_corrected() -> None:
    early = "2026-11-20T01:00:00.000Z"
    text = metrics_text(
        structs.replace(RESULT, ended=early, jobs=(structs.replace(NEWS, ended=early),))
    )
    assert 'msauto_batch_duration_seconds{batch="nightly"} 0.0' in text
    assert 'msauto_job_duration_seconds{batch="nightly",batch_job="news"} 0.0' in text


def test_each_metric_of_the_dashboard_exists() -> None:
    dashboard = (ROOT / "docs/examples/grafana-dashboard.json").read_text(encoding="utf-8")
    json.loads(dashboard)
    known = set(re.findall(r"^# TYPE (\w+)", metrics_text(RESULT), re.MULTILINE))
    named = set(re.findall(r"msauto_\w+", dashboard))
    assert named == known


@pytest.fixture(scope="session")
def promtool() -> str:
    found = shutil.which("promtool")
    if found is None:
        pytest.skip(
            "promtool IS NOT INSTALLED: the metrics and the alert rules are NOT checked (package prometheus)"
        )
    return found


def test_promtool_accepts_the_metrics(promtool: str) -> None:
    done = subprocess.run(
        [promtool, "check", "metrics"],
        input=metrics_text(RESULT),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_promtool_tests_the_alert_rules(promtool: str, tmp_path: Path) -> None:
    labels = '{batch="nightly",batch_job="news"}'
    hour = 3600
    tests = {
        "rule_files": [str(RULES)],
        "evaluation_interval": "1h",
        "tests": [
            {
                "interval": "1h",
                "input_series": [
                    {
                        "series": f"msauto_job_last_success_timestamp_seconds{labels}",
                        "values": "0x40",
                    }
                ],
                "alert_rule_test": [
                    {"eval_time": f"{hours}h", "alertname": "MsautoNoSuccess", "exp_alerts": alerts}
                    for hours, alerts in ((26, []), (28, [_alert(28 * hour)]))
                ],
            }
        ],
    }
    (tmp_path / "tests.yml").write_text(yaml.safe_dump(tests), encoding="utf-8")
    for arguments in (["check", "rules", str(RULES)], ["test", "rules", "tests.yml"]):
        done = subprocess.run(
            [promtool, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


def _alert(age: int) -> dict[str, Any]:
    rule = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"][0]["rules"][0]
    words = {
        "{{ $labels.batch_job }}": "news",
        "{{ $labels.batch }}": "nightly",
        "{{ $value | humanizeDuration }}": f"1d {age // 3600 - 24}h 0m 0s",
    }
    said = rule["annotations"]["summary"]
    for word, value in words.items():
        said = said.replace(word, value)
    return {
        "exp_labels": {**rule.get("labels", {}), "batch": "nightly", "batch_job": "news"},
        "exp_annotations": {"summary": said},
    }


# systemd ----------------------------------------------------------------------------------------------------------


def test_a_status_line_for_systemd() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd,
    ):
        systemd.bind(f"{folder}/notify")
        notify_systemd({"NOTIFY_SOCKET": f"{folder}/notify"}, "job news\nof nightly")
        assert systemd.recv(1000) == b"STATUS=job news of nightly"
        notify_systemd({"NOTIFY_SOCKET": f"{folder}/nothing"}, "x")
        notify_systemd({}, "x")


def test_priorities_in_the_journal() -> None:
    journal = StringIO()
    stream = JournalStream(journal)
    for text in (
        "Error: no\n  → do this\n",
        "Warning: hm",
        "\n",
        "=== nightly: news\n",
        "a.yml:1:1: no\n\n1 problem.\n",
    ):
        stream.write(text)
    assert journal.getvalue().splitlines() == [
        "<3>Error: no",
        "<3>  → do this",
        "<4>Warning: hm",
        "<6>=== nightly: news",
        "<3>a.yml:1:1: no",
        "<3>",
        "<3>1 problem.",
    ]
    assert os.linesep not in stream.getvalue()
