"""``msauto simulate``: the embedded media server, until Ctrl-C."""

from __future__ import annotations

import errno
import importlib.util

import click

from msauto.cli.output import say
from msauto.cli.seconds import read_seconds
from msauto.errors import MsautoError

NEEDED = ("uvicorn", "httptools", "PIL", "av")


def require_simulator() -> None:
    """Raise where the packages of the embedded media server are not installed."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise MsautoError(
            f"the embedded media server needs packages that are not installed: {', '.join(missing)}",
            remedy="make demo in a clone installs them: pip install '.[simulator]'",
        )


@click.command("simulate", short_help="Run a media server to try playbooks on.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=7901, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one.")
@click.option("--state", type=click.Path(dir_okay=False), metavar="FILE", help="Keep the state in this file.")
@click.option(
    "--dialect", multiple=True, metavar="K=V", help="Answer as such a server: segment_update=overwrite; several."
)
@click.option(
    "--fault",
    multiple=True,
    metavar="KIND@REGEX[*TIMES][+SKIP]",
    help="Misbehave: 'status:503@SETFIELD*2' refuses two SETFIELDs; several.",
)
@click.option("--seed", default="sample", show_default=True, metavar="sample|empty|bulk:N", help="What it holds.")
@click.option("--log", type=click.Path(dir_okay=False), metavar="FILE", help="Log each request as a line of JSON.")
@click.option(
    "--restore-seconds",
    callback=read_seconds,
    default="10",
    metavar="S",
    show_default=True,
    help="How long RESTORE takes.",
)
@click.option(
    "--proxy-seconds",
    callback=read_seconds,
    default="0",
    metavar="S",
    show_default=True,
    help="How long making a web proxy takes.",
)
def command(
    *,
    host: str,
    port: int,
    state: str | None,
    dialect: tuple[str, ...],
    fault: tuple[str, ...],
    seed: str,
    log: str | None,
    restore_seconds: float,
    proxy_seconds: float,
) -> None:
    """Run a media server to try playbooks on: the whole interface, realistic content, dialects, faults."""
    require_simulator()
    from msauto.simulator import Simulator

    try:
        simulator = Simulator(
            seed,
            dialect,
            fault,
            host=host,
            port=port,
            restore_seconds=restore_seconds,
            proxy_seconds=proxy_seconds,
            state_file=state,
            log_file=log,
        )
        simulator.run(lambda url: say(f"A media server listens at {url} (Ctrl-C stops it)."))
    except OSError as error:
        taken = error.errno == errno.EADDRINUSE
        remedy = "--port 0 takes a free port" if taken else "see msauto simulate --help"
        raise MsautoError((taken and error.strerror) or str(error), remedy=remedy) from error
    except ValueError as error:
        raise MsautoError(str(error), remedy="see msauto simulate --help") from error
