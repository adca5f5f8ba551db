"""``on_end`` of a job: programs that run after it, without a shell. They never change its outcome."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from msauto.batch.batch_file import Job
from msauto.batch.batch_result import BatchResult, JobResult, SentMessage
from msauto.playbook.input_files import beside

_SECONDS: Final = 60
_STDERR: Final = 2  # stdout is for the summary


def run_end_programs(job: Job, result: JobResult, batch: BatchResult, env: Mapping[str, str]) -> Iterator[SentMessage]:
    """Run the programs of a job one after another; yield what came of each. What they print goes to stderr."""
    about = {
        "MSAUTO_BATCH": batch.batch,
        "MSAUTO_BATCH_RUN": batch.run,
        "MSAUTO_JOB": job.name,
        "MSAUTO_OUTCOME": result.outcome,
        "MSAUTO_CODE": str(result.code),
        "MSAUTO_REASON": result.reason,
        "MSAUTO_ATTEMPTS": str(result.attempts),
        "MSAUTO_RUNS": " ".join(result.runs),
    }
    folder = Path(batch.file).parent
    for program, *arguments in job.args.on_end or ():
        path = str(Path(beside(batch.file, program)).absolute()) if "/" in program else program
        error = _run([path, *arguments], folder, {**env, **about})
        yield SentMessage(kind="program", to=program, error=error)


def _run(command: list[str], folder: Path, env: Mapping[str, str]) -> str:
    """Run a program; return why it failed, or nothing."""
    try:
        process = subprocess.Popen(  # noqa: S603 - the programs of the batch file, without a shell
            command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=_STDERR, start_new_session=True
        )
    except (OSError, ValueError) as error:
        return f"it cannot be started: {getattr(error, 'strerror', None) or error}"
    try:
        code = process.wait(_SECONDS)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return f"it did not end within {_SECONDS} s, and was killed"
    return f"it ended with {code}" if code else ""
