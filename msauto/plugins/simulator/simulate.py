"""``msauto simulate``: the embedded media server, until Ctrl-C."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import click

from msauto.cli.flags import WholeNumber, option
from msauto.cli.help import HelpCommand
from msauto.cli.output import print_message
from msauto.errors import MsautoError
from msauto.plugins.simulator.embedded.dialect import SimDialect

_KINDS = """\b
Kinds of faults:
  status:CODE[:RETRY_AFTER]         answer with the status, do nothing
  done_status:CODE[:RETRY_AFTER]    do the work, then answer with the status
  lag:SECONDS[:CODE[:RETRY_AFTER]]  answer now, do the work later
  delay:SECONDS                     wait, then work normally
  cut_before, cut_after             no answer; the work is not done, is done
  late:SECONDS                      no answer; the work is done later
  deferred:REQUESTS[:CODE[:RETRY_AFTER]]  answer 202, or the code; do the work
                                    before so many requests from now
  swallow                           report success, do nothing
  garbage, truncate, html           garbage, half an answer, a login page
  partial                           the answer with the status 206
  cut_at:BYTES[:SECONDS]            a part of the answer
  slow_body[:SECONDS]               a slow answer
  before:CHANGE, after:CHANGE       change the content as another user does
CHANGE: rename:OLD:NEW, swap:ONE:OTHER, rerecord:TITLE,
        edit:TITLE:FIELD:VALUE, delete:TITLE
"""


def _switches() -> str:
    """Return the keys of the dialect, each with its values, the default first."""
    lines = ["\b", "Keys of --dialect, and their values:"]
    for key, values in SimDialect.choices().items():
        listed = ", ".join(values) or "any text"
        lines.append(f"  {key:<17} {listed}")
    return "\n".join(lines)


@click.command("simulate", cls=HelpCommand, epilog=f"{_KINDS}\n{_switches()}")
@option("--host ADDRESS", "Address to listen on.", default="127.0.0.1", show_default=True)
@option("--port N", "Default 7901; 0: a free port.", default=7901, type=WholeNumber(0, 65535))
@option(
    "--state FILE",
    "Keep the state in FILE; what a .yml file becomes is kept beside it, in FILE.json.",
    "state_file",
)
@option(
    "--dialect K=V",
    "Behaviour of the server, such as segment_update=overwrite (repeatable). Keys and values: see below.",
    multiple=True,
)
@option(
    "--fault KIND@REGEX[*TIMES][+SKIP]",
    "Fault: 'status:503@SETFIELD*2' answers 503 to two SETFIELDs (repeatable). Kinds: see below.",
    "faults",
    multiple=True,
)
@option("--seed sample|empty|bulk:N", "Content of the server.", default="sample", show_default=True)
@option("--log FILE", "Log each request as JSON.", "log_file")
def command(
    *,
    seed: str,
    dialect: tuple[str, ...],
    faults: tuple[str, ...],
    state_file: str | None,
    **options: Any,
) -> None:
    """Run a media server to try playbooks on: the whole interface, realistic content, dialects, faults."""
    from msauto.plugins.simulator.content import load_content
    from msauto.plugins.simulator.embedded import ServerState, Simulator

    content: ServerState | str = seed
    try:
        if state_file is not None and state_file.lower().endswith((".yml", ".yaml")):
            content, state_file = load_content(Path(state_file)), f"{state_file}.json"
            if Path(state_file).exists():
                print_message(
                    f"{state_file} has what it became; without it, the content begins again."
                )
        simulator = Simulator(
            content, dialect, faults, state_file=state_file, restore_seconds=10, **options
        )
        simulator.run(
            lambda url: print_message(f"A media server listens at {url} (Ctrl-C stops it).")
        )
    except OSError as error:
        message = str(error)
        remedy = "see msauto simulate --help"
        if error.errno == errno.EADDRINUSE:
            message, remedy = str(error.strerror), "use --port 0 for a free port"
        if error.filename:
            message = f"{error.filename}: {error.strerror}"
        raise MsautoError(message, remedy=remedy) from error
    except ValueError as error:
        raise MsautoError(str(error), remedy="see msauto simulate --help") from error
