"""The batches in the ledger: the record of each run, from its start on, and what the runs before it did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from msgspec import structs

from msauto.batch.batch_result import BatchResult
from msauto.batch.batch_summary import heading_of
from msauto.errors import LedgerError
from msauto.ledger import Ledger
from msauto.model.codec import dump, load
from msauto.model.run_records import RunSummary


def record_result(ledger: Ledger, result: BatchResult, folder: str, repository: str = "") -> None:
    """Record a batch as far as it got; ``folder`` is the working directory, ``repository`` that of its file."""
    summary = RunSummary(
        run=result.run,
        started=result.started,
        ended=result.ended,
        status=result.outcome,
        playbooks=(result.file,),
        summary=dict(Counter(each.outcome.replace(" ", "_") for each in result.jobs)),
        code=result.code,
        reason=heading_of(result).partition(": ")[2] if result.ended else "",
        user=result.user,
        host=result.host,
        folder=folder,
        batch=result.batch,
        repository=repository,
    )
    ledger.record_batch(summary, dump(result), ran=bool(result.jobs))


def past_results(ledger: Ledger, batch: str | None = None) -> Iterator[BatchResult]:
    """Yield the results of a batch, or of all, newest first; one whose process died is interrupted."""
    for summary, record in ledger.batches():
        if batch is None or summary.batch == batch:
            yield _result(ledger.name, record, died=summary.status == "died")


def last_result(ledger: Ledger, batch: str) -> BatchResult | None:
    """Return the newest result, with the jobs of the one before as ``earlier`` if it ran none."""
    results = list(past_results(ledger, batch))
    if not results:
        return None
    handled = max((each.handled for each in results if each.handled is not None), default=None)
    newest = structs.replace(results[0], handled=handled)
    ran = next((each for each in results if each.jobs), newest)
    return newest if ran.run == newest.run else structs.replace(newest, earlier=(*ran.jobs, *ran.earlier))


def _result(name: str, record: str, *, died: bool) -> BatchResult:
    try:
        result = load(BatchResult, record)
    except ValueError as error:
        remedy = "use the msauto that wrote it, or choose another --state-dir"
        raise LedgerError(
            f"the ledger {name} has a batch that this msauto cannot read: {error}", remedy=remedy
        ) from None
    return structs.replace(result, outcome="interrupted", reason="its process died") if died else result
