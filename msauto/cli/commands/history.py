"""``msauto history``: the runs, newest first, or one run with its requests. Reads only the ledger."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec import structs

from msauto import sockets
from msauto.api.history import PastRuns, list_changes, list_runs, read_attempt
from msauto.cli.flags import Flags, WholeNumber, layout_of, option, parse_age, shared_flags_of
from msauto.cli.help import HelpCommand
from msauto.cli.output import print_message, print_result, print_table, terminal_width
from msauto.codec import to_json
from msauto.ledger.history import OPTIONS, REASON
from msauto.model.result import (
    UNTREATED_NOTE,
    PastTarget,
    RequestRecord,
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

if TYPE_CHECKING:
    from msauto.report.layout import Layout

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
_MOST_LISTED: Final = 20
"""How many runs are listed without ``-n``."""
_MOST_OUTSIDE: Final = 10
"""How many things that were changed outside a run shows without ``-v``."""


@click.command("history", cls=HelpCommand)
@click.argument("run", required=False)
@option("-n, --number N", "So many runs; default 20.", type=WholeNumber(1, 10**6))
@option("--batch NAME", "Only this batch and its runs.")
@option("--since AGE", "Only what started in this time, such as 26h or 7d.", callback=parse_age)
@option("--all", "Also the runs of other repositories.", "every")
@option("--title GLOB", "What runs changed of these clips, or found changed outside.")
@shared_flags_of("text", "json", uses=["state_dir", "limit", "verbose"])
def command(
    *,
    flags: Flags,
    run: str | None,
    number: int | None,
    every: bool,
    batch: str | None,
    since: timedelta | None,
    title: str | None,
) -> None:
    """List the runs, newest first; with RUN (a name of the list, or `last`), show what is not done, and counts.

    With `-v` RUN shows each target and request.

    With --title, show the journal of clips: each run that changed them, newest first.

    Instead of a name, its first characters are enough if no other name begins with them. In a repository (a folder with
    msauto.toml or .git, and those below it) the list has the runs of this repository.
    """
    ledger = flags.inputs.ledger
    limit = flags.inputs.given.limit
    if title is not None:
        if run is not None or batch is not None:
            what = "RUN" if run is not None else "--batch"
            raise click.UsageError(
                f"--title cannot be used with {what}\n  → leave one of the two out"
            )
        changes = list_changes(ledger, title, limit=limit, since=since, every=every)
        _show_journal(_of_newest(changes, number), flags)
    elif run is None:
        found = list_runs(ledger, batch=batch, limit=limit, since=since, every=every)
        _list_runs(found, flags, number or _MOST_LISTED)
    else:
        summary, details = read_attempt(ledger, run)
        if summary.is_batch:
            past_batches = sockets.find("records", "batch")
            print_result(
                past_batches.render_history(ledger, summary, flags.format, layout_of(flags))
            )
        elif details is not None:
            _show_run(details, flags)
        else:
            _show_attempt(summary, flags)


def _list_runs(found: PastRuns, flags: Flags, number: int) -> None:
    """List the newest runs, and print how many others there are."""
    earlier = len(found.runs) - number
    if earlier > 0:
        found = structs.replace(found, runs=found.runs[:number])
        print_message(
            f"{plural(earlier, 'earlier run')} not shown\n  → show more: msauto history -n {2 * number}"
        )
    if found.others:
        others = plural(found.others, "run")
        print_message(
            f"{others} of other repositories not shown\n  → show all runs: msauto history --all"
        )
    if flags.format == "json":
        print_result(dump([to_json(run) for run in found.runs]))
    elif found.runs:
        _print_runs(found, flags)
    elif not found.others:
        missing = "" if found.exists else ", which does not exist"
        print_message(f"No runs in {found.ledger}{missing}.")


def _print_runs(found: PastRuns, flags: Flags) -> None:
    on_terminal = terminal_width(sys.stdout) is not None
    by_one = len({run.who for run in found.runs}) == 1
    headers = ["run", "started", "took", "status", "who", "outcome"]
    if on_terminal and by_one:
        headers.remove("who")
    rows = []
    for run in _by_night(found.runs):
        name = run.run
        if on_terminal:  # what is piped is searched for whole names
            name = found.short.get(name, name)
        columns = _columns(run, name)
        rows.append([columns[header] for header in headers])
    view = {"whole": headers[:4], "narrowest": _NARROWEST, "styles": {"status": _STATUS}}
    print_table(headers, rows, no_color=flags.no_color, **view)


def _show_attempt(summary: RunSummary, flags: Flags) -> None:
    """Show an attempt that wrote nothing; of a job also why targets are not done, and what differs."""
    if flags.format == "json":
        print_result(dump(to_json(summary)))
        return
    facts = {
        "run": summary.run,
        "status": summary.status,
        "reason": summary.reason,
        "code": str(summary.code),
        "started": _time(summary.started),
        "ended": _time(summary.ended),
        "playbooks": " ".join(summary.playbooks),
        "user": summary.user,
        "host": summary.host,
        "folder": summary.folder,
    }
    if summary.settings:
        facts["settings"] = summary.settings
    print_table(("fact", "value"), [*facts.items()], no_color=flags.no_color)
    if summary.job:
        job = sockets.find("records", "batch").render_attempt(flags.inputs.ledger, summary)
        if job:
            print_result(f"\n{job}")


def _of_newest(found: Sequence[PastTarget], number: int | None) -> Sequence[PastTarget]:
    """Return what the newest runs changed, so many of them; without a number, what all did."""
    newest = list(dict.fromkeys(past.run.run for past in found))[:number]
    return [past for past in found if past.run.run in newest]


def _show_journal(found: Sequence[PastTarget], flags: Flags) -> None:
    """Show what runs changed of clips, clip by clip, newest first."""
    if flags.format == "json":
        print_result(
            dump([{**to_json(past.run), "target": _target_json(past.record)} for past in found])
        )
        return
    clips: dict[str, list[str]] = {}
    for past in found:
        clips.setdefault(target_heading(past.record.target), []).extend(_journal_lines(past))
    for heading, lines in clips.items():
        print_result("\n".join([heading, *lines, "", ""]))
    if not clips:
        print_message("No run changed such a clip.")


def _journal_lines(past: PastTarget) -> Iterator[str]:
    run, target = past.run, past.record.target
    job_names = filter(None, (run.batch, run.job))
    job = "/".join(job_names) or " ".join(run.playbooks)
    began = f"{_time(run.started)}  {visible(job)}"
    yield f"  {began}  {run.run}  {past.record.result.outcome}"
    for change in target.changes:
        parts = map(str, change_parts(change, target))
        notes = "; ".join(change_notes(change, target.rate))
        if notes:
            notes = f"({notes})"
        shown_parts = ", ".join(parts)
        columns = [change.aspect, show_key(change), shown_parts, notes]
        sign = SIGNS[change.action]
        line = "  ".join(filter(None, columns))
        yield f"    {sign} {line}"


def _by_night(runs: Iterable[RunSummary]) -> list[RunSummary]:
    """Return runs, newest first; the jobs of a batch follow it in their order."""
    ordered: list[RunSummary] = []
    jobs: dict[str, list[RunSummary]] = {}
    for run in runs:
        if run.job:
            jobs.setdefault(run.batch, []).insert(0, run)
            continue
        ordered.append(run)
        if run.is_batch:
            ordered += jobs.pop(run.batch, ())
    return [*ordered, *chain.from_iterable(jobs.values())]


def _columns(run: RunSummary, name: str) -> dict[str, str]:
    took = show_seconds(seconds_between(run.started, run.ended)) if run.ended else ""
    what = f"  {run.job}" if run.job else run.batch or " ".join(run.playbooks)
    about = {
        "run": name,
        "started": _time(run.started),
        "took": took,
        "status": run.status,
        "who": run.who,
    }
    return {**about, "outcome": f"{what}: {_outcome(run)}"}


def _time(text: str | None) -> str:
    return local_time(text) if text else ""


def _outcome(run: RunSummary) -> str:
    facts: tuple[str, ...]
    sent = run.summary.get("sent")
    if sent is None:  # a batch, or an attempt that did not become a run
        differing = run.summary.get("differing")
        found = "" if differing is None else f"{plural(differing, 'target')} found to differ"
        facts = (found, run.reason.removeprefix(f"{run.status}: "))
    else:
        planned = run.summary.get("requests", 0)
        requests = plural(planned, "request")
        if sent != planned:
            requests = f"{sent} of {requests} sent"
        facts = (count_outcomes(run.summary), requests, run.reason)
    return "; ".join(filter(None, facts))


def _show_run(details: RunDetails, flags: Flags) -> None:
    if flags.format == "json":
        notes = {}
        for name, text in details.notes.items():
            if not name.startswith(UNTREATED_NOTE):
                notes[name] = text
        process = {
            "msauto": details.msauto,
            "pid": details.pid,
            "host": details.host,
            "notes": notes,
            "skipped": to_json(details.plan.skipped),
        }
        targets = [_target_json(target) for target in details.targets]
        print_result(dump({**to_json(details.summary), **process, "targets": targets}))
        return
    run = details.summary
    if flags.verbosity or run.status == "running":
        from msauto.report.result_view import severity

        for record in sorted(details.targets, key=lambda record: severity(record.result.outcome)):
            print_result("\n".join([*_target_lines(record), "", ""]))
    elif details.targets or details.plan.skipped:
        _print_outcomes(details, layout_of(flags))
    facts = {
        "run": run.run,
        "status": run.status,
        "started": _time(run.started),
        "ended": _time(run.ended),
        "playbooks": " ".join(run.playbooks),
        "outcome": _outcome(run),
        "process": f"{details.pid} on {details.host}, msauto {details.msauto}",
    }
    for name, text in details.notes.items():
        is_internal = name in {OPTIONS, REASON} or name.startswith(UNTREATED_NOTE)
        if text and not is_internal:
            facts[name.replace("_", " ")] = text
    print_table(("fact", "value"), [*facts.items()], no_color=flags.no_color)


def _print_outcomes(details: RunDetails, layout: Layout) -> None:
    """Print what is not done, counts, what was deleted, and what was changed outside."""
    from msauto.report.layout import listing, render_lines
    from msauto.report.losses import loss_lines, losses_of
    from msauto.report.text import render_outcomes

    outside = []
    changed = []
    for record in details.targets:
        if record.outcome == "changed":
            changed.append(record.target)
        heading = target_heading(record.target)
        for line in _outside_lines(record):
            outside.append(f"{heading}: {line}")
    more = len(outside) - _MOST_OUTSIDE
    if more > 0:
        outside[_MOST_OUTSIDE:] = [f"… and {more} more"]
    notes = [*loss_lines(losses_of(changed)), *outside]
    if notes:
        notes.append("")
    shown = render_lines(map(listing, notes), layout)
    print_result(
        (*render_outcomes(details.result, layout), *shown, "→ for each request: add -v\n\n")
    )


def _target_lines(record: TargetRecord) -> Iterator[str]:
    outcome: str | None = record.outcome
    if not outcome:
        outcome = "in progress" if record.begun else "planned"
    message, *more = message_lines(record.message)
    heading = f"{target_heading(record.target)}: {outcome}"
    if message:
        heading += f": {message}"
    yield heading
    for line in more:
        yield f"  {line}"
    for difference in record.differences:
        values = f"desired {difference.desired!r}, live {difference.live!r}"
        yield visible(f"  {difference.aspect} {difference.key}: {values}")
    for line in _outside_lines(record):
        yield f"  {line}"
    for request, sent in zip(record.target.requests, record.requests, strict=True):
        line = f"  {sent.state:<9} {request.method} {request.path}"
        notes = "; ".join(_request_notes(sent))
        if notes:
            line += f"  ({notes})"
        yield visible(line)


def _request_notes(sent: RequestRecord) -> Iterator[str]:
    if sent.status is not None:
        yield f"status {sent.status}"
    if sent.tries > 1:
        yield f"sent {sent.tries} times"
    if sent.message:
        yield sent.message


def _outside_lines(record: TargetRecord) -> Iterator[str]:
    for change in record.target.changes:
        if change.outside is not None:
            note = outside_note(change, change.outside, record.target.rate)
            yield f"{visible(f'{change.aspect} {change.key}')}: {note}"


def _target_json(record: TargetRecord) -> dict[str, Any]:
    """Return a target as in the plan, with its result and that of each request."""
    target: dict[str, Any] = to_json(record.target)
    for request, sent in zip(target["requests"], record.requests, strict=True):
        result = to_json(sent)
        request["result"] = {"outcome": result.pop("state"), **result}
    names = ("outcome", "message", "begun", "differences")
    return {**target, "result": {name: to_json(getattr(record, name)) for name in names}}
