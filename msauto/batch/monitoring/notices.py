"""Notices: what happened to a batch in the words of its subscribers, sent with Apprise.

Apprise runs in a process of its own: a service that hangs would otherwise hold up the end of this one.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Final

from msauto.batch.batch_result import BatchResult
from msauto.errors import MsautoError
from msauto.playbook.schema.batch import Event

_MARGIN: Final = 0.5  # seconds, so that a process that hangs is killed within the time of the message
_EVENTS: Final[dict[int, Event]] = {4: "refused", 5: "locked"}


def events_of(result: BatchResult) -> tuple[Event, ...]:
    """Return what happened, in the order of their urgency."""
    codes: list[int | None] = [each.code for each in result.jobs if each.code] or [result.code]
    found: set[Event] = {_EVENTS.get(code, "failed") for code in codes if code}
    if result.outcome == "missed":
        found = {"missed"}
    happened: dict[Event, bool] = {
        "failed": "failed" in found,
        "refused": "refused" in found,
        "locked": "locked" in found,
        "missed": "missed" in found or bool(result.missed),
        "drift": result.drift_changed,
        "changed": any(each.summary.get("changed") for each in result.jobs),
        "recovered": result.recovered,
        "ok": result.code == 0,
    }
    return tuple(event for event, did in happened.items() if did)


def send_notice(url: str, title: str, body: str, seconds: float, *, kind: str = "info") -> None:
    """Send a notice to an Apprise URL; ``kind`` is info, success, warning or failure."""
    message = {"url": url, "title": title, "body": body, "kind": kind}
    command = [sys.executable, "-P", "-m", "msauto.batch.monitoring.send_notice"]
    try:
        done = subprocess.run(  # noqa: S603 - this program
            command,
            input=json.dumps(message),
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=max(0.1, seconds - _MARGIN),
            check=False,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        raise MsautoError(f"no answer within {seconds:.1f} s", remedy="check the address") from None
    if done.returncode != 0:
        lines = done.stdout.strip().splitlines() or ["the service did not accept it"]
        raise MsautoError(lines[-1], remedy="check the address")
