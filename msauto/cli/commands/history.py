"""``msauto history``: what ran, newest first; with a run, everything about it. Reads the ledger alone."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from msauto.cli.flags import Flags, require_text_or_json, shared_flags
from msauto.cli.output import colour_on, give, say
from msauto.cli.runs.past_runs import SETTINGS
from msauto.ledger import Ledger
from msauto.model.codec import to_json
from msauto.model.history import RequestRecord, RunDetails, RunSummary, TargetRecord
from msauto.model.result import OUTCOMES, key_of
from msauto.report.json import dump
from msauto.report.sanitizing import visible
from msauto.report.sentences import plural
from msauto.report.tables import render_table
from msauto.report.titles import head_of
from msauto.secrets.taint import HIDDEN, TOKEN_PATTERN


@click.command("history", short_help="List the runs, or tell all about one.")
@click.argument("run", required=False)
@shared_flags
def command(*, flags: Flags, run: str | None) -> None:
    """List the runs, newest first; or tell all about RUN (a name of the list, or `last`)."""
    require_text_or_json(flags)
    with Ledger.open(flags.state_dir, readonly=True) as ledger:
        if run is not None:
            found = ledger.find(run)
            if ledger.is_run(found.run):
                _give_run(ledger.run_details(found.run), flags)
            else:
                _give_attempt(found, flags)
            return
        runs = ledger.attempts()
    if flags.format == "json":
        give(dump([to_json(each) for each in runs]))
    elif runs:
        headers = ("run", "started", "ended", "status", "playbooks", "what came of it")
        give(_table(headers, [_row(each) for each in runs], flags))
    else:
        say(f"No run is recorded in {ledger.path}.")


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]], flags: Flags) -> str:
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    return render_table(headers, rows, colour=colour_on(sys.stdout, no_color=flags.no_color), width=width)


def _row(run: RunSummary) -> list[str]:
    return [run.run, _time(run.started), _time(run.ended), run.status, " ".join(run.playbooks), _outcome(run)]


def _time(text: str | None) -> str:
    """Show a time of the ledger (ISO 8601, UTC) to the second."""
    return f"{text[:10]} {text[11:19]}Z" if text else ""


def _outcome(run: RunSummary) -> str:
    if "sent" not in run.summary:  # it never became a run
        return run.reason
    counts = [f"{run.summary[key_of(each)]} {each}" for each in OUTCOMES if run.summary.get(key_of(each))]
    return "; ".join(filter(None, [", ".join(counts), _requests(run)]))


def _requests(run: RunSummary) -> str:
    """Tell how many requests were sent, and of how many, where the run was cut short: those are not the same."""
    planned, sent = run.summary.get("requests", 0), run.summary.get("sent", 0)
    return plural(planned, "request") if sent == planned else f"{sent} of {plural(planned, 'request')} sent"


def _give_attempt(attempt: RunSummary, flags: Flags) -> None:
    if flags.format == "json":
        give(dump(to_json(attempt)))
        return
    facts = {"run": attempt.run, "status": attempt.status, "reason": attempt.reason, "code": str(attempt.code)}
    facts |= {"started": _time(attempt.started), "ended": _time(attempt.ended)}
    facts |= {"playbooks": " ".join(attempt.playbooks)}
    facts |= {"user": attempt.user, "host": attempt.host, "folder": attempt.folder}
    give(_table(("fact", "value"), [list(fact) for fact in facts.items()], flags))


def _give_run(details: RunDetails, flags: Flags) -> None:
    if flags.format == "json":
        give(TOKEN_PATTERN.sub(HIDDEN, dump(_details(details))))
        return
    run = details.summary
    facts = {
        "run": run.run,
        "status": run.status,
        "started": _time(run.started),
        "ended": _time(run.ended),
        "playbooks": " ".join(run.playbooks),
        "outcome": _outcome(run),
        "process": f"{details.pid} on {details.host}, msauto {details.msauto}",
        **{name.replace("_", " "): text for name, text in details.notes.items() if _is_there(name, text)},
    }
    give(_table(("fact", "value"), [list(fact) for fact in facts.items()], flags))
    told = "".join(f"{line}\n" for target in details.targets for line in _target(target))
    give(TOKEN_PATTERN.sub(HIDDEN, told))


def _is_there(name: str, text: str) -> bool:
    """Tell whether a note says something: settings that never were, or are gone, do not."""
    return name != SETTINGS or Path(text).is_file()


def _target(record: TargetRecord) -> Iterator[str]:
    yield ""
    told = f": {record.message}" if record.message else ""
    yield f"{head_of(record.target)}: {record.outcome or 'the run ended before it was done'}{visible(told)}"
    for difference in record.differences:
        words = f"{difference.aspect} {difference.key}: wanted {difference.desired!r}, is {difference.live!r}"
        yield f"  {visible(words)}"
    for request, came in zip(record.target.requests, record.requests, strict=True):
        yield f"  {came.state:<9} {request.method} {visible(request.path)}{visible(_notes(came))}"


def _notes(came: RequestRecord) -> str:
    notes = [f"status {came.status}"] if came.status is not None else []
    notes += [f"sent {came.tries} times"] if came.tries > 1 else []
    notes += [came.message] if came.message else []
    return f"  ({'; '.join(notes)})" if notes else ""


# JSON ----------------------------------------------------------------------------------------------------------


def _details(details: RunDetails) -> dict[str, Any]:
    about = {"msauto": details.msauto, "pid": details.pid, "host": details.host, "notes": dict(details.notes)}
    return {**to_json(details.summary), **about, "targets": [_target_json(target) for target in details.targets]}


def _target_json(record: TargetRecord) -> dict[str, Any]:
    """Return a target as in the plan, with what came of it and of each request."""
    planned = to_json(record.target)
    requests = [
        {**request, "result": _request_json(came)}
        for request, came in zip(planned["requests"], record.requests, strict=True)
    ]
    result = {
        "outcome": record.outcome,
        "message": record.message,
        "begun": record.begun,
        "differences": to_json(record.differences),
    }
    return {**planned, "requests": requests, "result": result}


def _request_json(came: RequestRecord) -> dict[str, Any]:
    record = to_json(came)
    return {"outcome": record.pop("state"), **record}
