"""``msauto history``: the runs, newest first, or one run with its requests. Reads only the ledger."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

import click

from msauto import sockets
from msauto.api.history import PastRuns, list_changes, list_runs, read_attempt
from msauto.cli.flags import Flags, layout_of, parse_age, shared_flags_of
from msauto.cli.help import HelpCommand
from msauto.cli.output import print_message, print_result, print_table, terminal_width
from msauto.codec import to_json
from msauto.ledger.history import OPTIONS, REASON
from msauto.model.result import (
    UNCHANGED_NOTE,
    PastTarget,
    RunDetails,
    RunStatus,
    RunSummary,
    TargetRecord,
    seconds_between,
)
from msauto.report.json import dump
from msauto.report.sanitizing import message_lines, visible
from msauto.report.texts import (
    SIGNS,
    change_notes,
    change_parts,
    count_outcomes,
    local_time,
    outside_note,
    plural,
    show_key,
    show_seconds,
    target_heading,
)

_STATUS: Final[Mapping[RunStatus, str]] = {
    "running": "yellow",
    "ok": "green",
    "failed": "red",
    "died": "red",
    "error": "red",
    "interrupted": "magenta",
    "refused": "yellow",
    "locked": "yellow",
    "missed": "yellow",
}
_NARROWEST: Final = 40
"""Columns of an outcome beside the run; on a narrower terminal it is below."""
_MOST_OUTSIDE: Final = 10
"""How many things that were changed outside a run shows without ``-v``."""


@click.command("history", cls=HelpCommand)
@click.argument("run", required=False)
@click.option("--batch", metavar="NAME", help="Only this batch and its runs.")
@click.option("--since", callback=parse_age, metavar="AGE", help="Only what started in this time, such as 26h or 7d.")
@click.option("--all", "every", is_flag=True, help="Also the runs of other repositories.")
@click.option("--title", metavar="GLOB", help="What runs changed of these clips, or found changed outside.")
@shared_flags_of("text", "json", uses=["state_dir", "limit", "verbose"])
def command(
    *, flags: Flags, run: str | None, every: bool, batch: str | None, since: timedelta | None, title: str | None
) -> None:
    """List the runs, newest first; with RUN (a name of the list, or `last`), show what is not done, and counts.

    With `-v` RUN shows each target and request.

    With --title, show the journal of clips: each run that changed them, newest first.

    Instead of a name, its first characters are enough if no other name begins with them. In a repository (a folder with
    msauto.toml or .git, and those below it) the list has the runs of this repository.
    """
    if title is not None:
        if run is not None or batch is not None:
            what = "RUN" if run is not None else "--batch"
            raise click.UsageError(f"--title cannot be used with {what}\n  → leave one of the two out")
        limit = flags.inputs.given.limit
        _show_journal(list_changes(flags.inputs.ledger, title, limit=limit, since=since, every=every), flags)
        return
    if run is None:
        _list_runs(list_runs(flags.inputs.ledger, batch=batch, since=since, every=every), flags)
        return
    summary, details = read_attempt(flags.inputs.ledger, run)
    if summary.is_batch:
        _show_batch(summary, flags)
    elif details is not None:
        _show_run(details, flags)
    elif flags.format == "json":
        print_result(dump(to_json(summary)))
    else:
        facts = {"run": summary.run, "status": summary.status, "reason": summary.reason, "code": str(summary.code)}
        facts |= {"started": _time(summary.started), "ended": _time(summary.ended)}
        facts |= {"playbooks": " ".join(summary.playbooks)}
        facts |= {"user": summary.user, "host": summary.host, "folder": summary.folder}
        facts |= {"settings": summary.settings} if summary.settings else {}
        print_table(("fact", "value"), [*facts.items()], no_color=flags.no_color)
        if summary.job:
            _show_attempt(summary, flags)


def _list_runs(found: PastRuns, flags: Flags) -> None:
    """List the runs, and print how many others there are."""
    if found.others:
        others = plural(found.others, "run")
        print_message(f"{others} of other repositories not shown\n  → show all runs: msauto history --all")
    if flags.format == "json":
        print_result(dump([to_json(each) for each in found.runs]))
    elif found.runs:
        on_terminal = terminal_width(sys.stdout) is not None  # what is piped is searched for whole names
        several = not on_terminal or len({each.who for each in found.runs}) > 1
        short = found.short if on_terminal else {}
        runs = [_columns(each, short.get(each.run, each.run)) for each in _by_night(found.runs)]
        headers = [name for name in runs[0] if several or name != "who"]
        rows = [[run[name] for name in headers] for run in runs]
        view = {"whole": headers[:4], "narrowest": _NARROWEST, "styles": {"status": _STATUS}}
        print_table(headers, rows, no_color=flags.no_color, **view)
    elif not found.others:
        print_message(f"No runs in {found.ledger}.")


def _show_batch(summary: RunSummary, flags: Flags) -> None:
    """Show a batch: its summary, and what was delivered to other systems."""
    past_batches = sockets.find("records", "batch")
    print_result(past_batches.render_history(flags.inputs.ledger, summary, flags.format))


def _show_attempt(summary: RunSummary, flags: Flags) -> None:
    """Show what came of a job that wrote nothing: why targets are not done, and what differs."""
    job = sockets.find("records", "batch").render_attempt(flags.inputs.ledger, summary)
    if job:
        print_result(f"\n{job}")


def _show_journal(found: Sequence[PastTarget], flags: Flags) -> None:
    """Show what runs changed of clips, clip by clip, newest first."""
    if flags.format == "json":
        print_result(dump([{**to_json(each.run), "target": _target_json(each.record)} for each in found]))
        return
    clips: dict[str, list[PastTarget]] = {}
    for each in found:
        clips.setdefault(target_heading(each.record.target), []).append(each)
    for heading, past in clips.items():
        lines = [heading, *(line for each in past for line in _journal_lines(each)), ""]
        print_result("".join(f"{line}\n" for line in lines))
    if not clips:
        print_message("No run changed such a clip.")


def _journal_lines(past: PastTarget) -> Iterator[str]:
    run, target = past.run, past.record.target
    job = "/".join(filter(None, (run.batch, run.job))) or " ".join(run.playbooks)
    yield f"  {_time(run.started)}  {visible(job)}  {run.run}  {past.record.outcome}"
    for change in target.changes:
        parts = ", ".join(map(str, change_parts(change, target)))
        notes = "; ".join(change_notes(change, target.rate))
        shown = [change.aspect, show_key(change), parts, notes and f"({notes})"]
        yield f"    {SIGNS[change.action]} {'  '.join(filter(None, shown))}"


def _by_night(runs: Iterable[RunSummary]) -> list[RunSummary]:
    """Return runs, newest first; the jobs of a batch follow it in their order."""
    ordered: list[RunSummary] = []
    jobs: dict[str, list[RunSummary]] = {}
    for run in runs:
        if run.job:
            jobs.setdefault(run.batch, []).insert(0, run)
        else:
            ordered += [run, *(jobs.pop(run.batch, ()) if run.is_batch else ())]
    return [*ordered, *(job for those in jobs.values() for job in those)]


def _columns(run: RunSummary, name: str) -> dict[str, str]:
    took = show_seconds(seconds_between(run.started, run.ended)) if run.ended else ""
    what = f"  {run.job}" if run.job else run.batch or " ".join(run.playbooks)
    about = {"run": name, "started": _time(run.started), "took": took, "status": run.status, "who": run.who}
    return {**about, "outcome": f"{what}: {_outcome(run)}"}


def _time(text: str | None) -> str:
    return local_time(text) if text else ""


def _outcome(run: RunSummary) -> str:
    if "sent" not in run.summary:  # a batch, or an attempt that did not become a run
        differing = run.summary.get("differing")
        found = "" if differing is None else f"{plural(differing, 'target')} found to differ"
        return "; ".join(filter(None, (found, run.reason.removeprefix(f"{run.status}: "))))
    planned, sent = run.summary.get("requests", 0), run.summary["sent"]
    requests = plural(planned, "request") if sent == planned else f"{sent} of {plural(planned, 'request')} sent"
    return "; ".join(filter(None, [count_outcomes(run.summary), requests, run.reason]))


def _show_run(details: RunDetails, flags: Flags) -> None:
    from msauto.report.layout import Line, render_lines, words
    from msauto.report.result_view import severity
    from msauto.report.text import render_outcomes

    if flags.format == "json":
        process = {"msauto": details.msauto, "pid": details.pid, "host": details.host, "notes": dict(details.notes)}
        targets = [_target_json(target) for target in details.targets]
        print_result(dump({**to_json(details.summary), **process, "targets": targets}))
        return
    run, layout = details.summary, layout_of(flags)
    if layout.verbosity or run.status == "running":
        records = sorted(details.targets, key=lambda each: severity(each.result.outcome))
        print_result(f"{line}\n" for record in records for line in (*_target_lines(record), ""))
    elif details.targets:
        outside = [
            f"{target_heading(record.target)}: {line}" for record in details.targets for line in _outside_lines(record)
        ]
        left = len(outside) - _MOST_OUTSIDE
        outside[_MOST_OUTSIDE:] = [f"… and {left} more"] if left > 0 else []
        shown = render_lines([*map(words, outside), *([Line(())] if outside else [])], layout)
        print_result((*render_outcomes(details.result, layout), *shown, "→ for each request: add -v\n\n"))
    facts = {
        "run": run.run,
        "status": run.status,
        "started": _time(run.started),
        "ended": _time(run.ended),
        "playbooks": " ".join(run.playbooks),
        "outcome": _outcome(run),
        "process": f"{details.pid} on {details.host}, msauto {details.msauto}",
        **{
            name.replace("_", " "): text
            for name, text in details.notes.items()
            if text and name not in {OPTIONS, REASON} and not name.startswith(UNCHANGED_NOTE)
        },
    }
    print_table(("fact", "value"), [*facts.items()], no_color=flags.no_color)


def _target_lines(record: TargetRecord) -> Iterator[str]:
    outcome = record.outcome or ("in progress" if record.begun else "planned")
    message, *more = message_lines(record.message)
    yield f"{target_heading(record.target)}: {outcome}" + (f": {message}" if message else "")
    yield from (f"  {line}" for line in more)
    for difference in record.differences:
        text = f"{difference.aspect} {difference.key}: desired {difference.desired!r}, live {difference.live!r}"
        yield f"  {visible(text)}"
    yield from (f"  {line}" for line in _outside_lines(record))
    for request, sent in zip(record.target.requests, record.requests, strict=True):
        notes = [f"status {sent.status}"] if sent.status is not None else []
        notes += [f"sent {sent.tries} times"] if sent.tries > 1 else []
        notes += [sent.message] if sent.message else []
        came = visible(f"  ({'; '.join(notes)})") if notes else ""
        yield f"  {sent.state:<9} {request.method} {visible(request.path)}{came}"


def _outside_lines(record: TargetRecord) -> Iterator[str]:
    for change in record.target.changes:
        if change.outside is not None:
            note = outside_note(change, change.outside, record.target.rate)
            yield f"{visible(f'{change.aspect} {change.key}')}: {note}"


def _target_json(record: TargetRecord) -> dict[str, Any]:
    """Return a target as in the plan, with its result and that of each request."""
    planned = to_json(record.target)
    requests = [
        {**request, "result": {"outcome": sent.state} | {n: v for n, v in to_json(sent).items() if n != "state"}}
        for request, sent in zip(planned["requests"], record.requests, strict=True)
    ]
    result = {name: to_json(getattr(record, name)) for name in ("outcome", "message", "begun", "differences")}
    return {**planned, "requests": requests, "result": result}
