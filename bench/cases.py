"""The cases: what is compared with what, at which sizes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import html_report
from bench.sides import named

Figures = dict[str, float]
MSAUTO = str(Path(sys.executable).with_name("msauto"))
COMPLETE = (
    "/usr/bin/env",
    "_MSAUTO_COMPLETE=bash_complete",
    "COMP_WORDS=msauto plan -l st",
    "COMP_CWORD=3",
    MSAUTO,
)
HISTORY = (MSAUTO, "history", "--state-dir", "{folder}")

CLIP = """<Clip link_id="{n}" finalized="true">
<Attr name="bps">16</Attr><Attr name="channels">2</Attr><Attr name="derived_from"></Attr>
<Attr name="frame_time">0.0400000000</Attr><Attr name="frames">{frames}</Attr>
<Attr name="height">1080</Attr><Attr name="width">1920</Attr><Attr name="sample_rate">48000</Attr>
<Attr name="orig_name">N{n:07}.mxf</Attr><Attr name="orig_type">MXF</Attr>
<Attr name="first_frame">0</Attr><Attr name="last_frame">{frames}</Attr>
<Attr name="title">Новости дня, выпуск {n}</Attr>
<Attr name="create_time">2026-11-{day:02}T10:00:00</Attr><Attr name="rec_time">2026-11-{day:02}T09:00:00</Attr>
</Clip>
"""


ANSIBLE = """
- hosts: all
  gather_facts: false
  tasks:
    - uri: {{url: "{url}/storage/NEWS@Bulk%20{{{{ '%06d' % item }}}}", return_content: true}}
      loop: "{{{{ range(0, {last} + 1) | list }}}}"
"""


@dataclass(frozen=True)
class Case:
    """A comparison. ``measure`` returns the figures of one round, in ``unit``."""

    name: str
    unit: str
    run: Callable[[], Figures]
    goal: float = 0
    """The ratio (or, without a baseline, the figure) that the project aims at."""


def measure(case: Case) -> Figures:
    return case.run()


@contextmanager
def media_server(count: int, *flags: str) -> Iterator[str]:
    """Run the embedded media server in its own process; yield its URL."""
    command = [
        sys.executable,
        "-m",
        "msauto",
        "simulate",
        "--port",
        "0",
        "--seed",
        f"bulk:{count}",
        *flags,
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            line = process.stderr.readline()
            yield next(word for word in line.split() if word.startswith("http"))
        finally:
            process.terminate()


def least_reads(name: str, size: int) -> int:
    """Return the least number of reads of a plan: each asset once, and one listing for a select."""
    return size + ("select" in name)


def side(name: str, size: int, source: str) -> Figures:
    """Run one side in its own process."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.sides", name, str(size), source],
        check=True,
        capture_output=True,
        text=True,
    )
    figures: Figures = json.loads(done.stdout)
    return figures


def marginal(name: str, sizes: tuple[int, int]) -> Figures:
    """Return the CPU microseconds of each further asset, and the peak memory at the larger size."""
    found = []
    for size in sizes:
        with media_server(size) as url:
            found.append(side(name, size, url))
    small, large = found
    reads = (
        {"reads": large["count"], "least": least_reads(name, sizes[1])}
        if name.startswith("plan")
        else {}
    )
    return {
        "us": (large["cpu"] - small["cpu"]) / (sizes[1] - sizes[0]) * 1e6,
        "mib": large["mib"],
        **reads,
    }


def compared(name: str, baseline: str, sizes: tuple[int, int] = (500, 4000)) -> Figures:
    """Compare two sides by their CPU time for each further asset."""
    base, ours = marginal(baseline, sizes), marginal(name, sizes)
    us = ours.pop("us")
    return {"base": base["us"], "msauto": us, "ratio": us / base["us"], **ours}


def span(name: str, size: int, latency: float) -> Figures:
    """Return the wall milliseconds of a side, from its first request for an asset to its last answer."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with media_server(size, "--fault", f"delay:{latency}@.", "--log", str(log)) as url:
            mib = side(name, size, url)["mib"]
        requests = map(json.loads, log.read_text().splitlines())
        times = [each["time"] for each in requests if each["target"].startswith("/storage/NEWS@")]
    return {"ms": (max(times) - min(times) + latency) * 1e3, "mib": mib}


def waiting(name: str, baseline: str, size: int, milliseconds: int) -> Case:
    """Compare two sides by their wall time at a server that waits before each answer: are all connections busy?"""

    def run() -> Figures:
        base, ours = (span(each, size, milliseconds / 1e3) for each in (baseline, name))
        return {
            "base": base["ms"],
            "msauto": ours["ms"],
            "ratio": ours["ms"] / base["ms"],
            "mib": ours["mib"],
        }

    return Case(f"{name}: wall of {size:,} at {milliseconds} ms", "ms", run, goal=1.15)


def whole(name: str, size: int) -> Figures:
    """Return the CPU seconds of one run over a server of this size."""
    with media_server(size) as url:
        found = side(name, size, url)
    return {"msauto": found["cpu"], "mib": found["mib"]}


def night(size: int) -> Figures:
    """Return the CPU seconds of applying a playbook to assets of which one in a hundred has changed since."""
    with media_server(size) as url:
        side("apply select", size, url)
        side("change", size, url)
        reads = side("plan changed", size, url)["count"]
        found = side("apply select", size, url)
    return {
        "msauto": found["cpu"],
        "mib": found["mib"],
        "reads": reads,
        "least": least_reads("select", size),
    }


def half_of_the_markers(size: int) -> Figures:
    """Return the CPU seconds of applying a playbook that names all markers of a clip, half of them changed."""
    with media_server(1, "--seed", "sample") as url:
        side("apply markers", size, url)
        found = side("change markers", size, url)
    return {"msauto": found["cpu"], "mib": found["mib"]}


def undo(size: int, few: int) -> Figures:
    """Compare the CPU time for each asset of a run that is undone with that of a small run."""
    small, large = (whole("undo select", count) for count in (few, size))
    base, ours = small["msauto"] / few, large["msauto"] / size
    return {"base": base * 1e6, "msauto": ours * 1e6, "ratio": ours / base, "mib": large["mib"]}


def ansible(size: int) -> Figures:
    """Compare planning from a table with as many GETs by Ansible's `uri` module (CPU of all its processes)."""
    program = Path(sys.executable).parents[1] / "clients" / "bin" / "ansible-playbook"
    with media_server(4000) as url, tempfile.TemporaryDirectory() as folder:
        book = Path(folder) / "play.yml"
        book.write_text(ANSIBLE.format(url=url, last=size - 1))
        here = f"ansible_python_interpreter={sys.executable}"
        base = process(str(program), "-i", "localhost,", "-c", "local", "-e", here, str(book))
    ours = marginal("plan loop", (500, 4000))
    return {
        "base": base["ms"] / size * 1e3,
        "msauto": ours["us"],
        "ratio": ours["us"] / (base["ms"] / size * 1e3),
        "mib": ours["mib"],
    }


def process(*command: str) -> Figures:
    """Return the CPU milliseconds and peak memory (MiB) of a whole process, from its start."""
    unseen = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_WRONLY, 0) for number in (1, 2)]
    pid = os.posix_spawn(command[0], command, os.environ, file_actions=unseen)
    _, status, used = os.wait4(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, command
    return {"ms": (used.ru_utime + used.ru_stime) * 1e3, "mib": used.ru_maxrss / 1024}


def repeated(times: int, *command: str) -> Figures:
    found = [process(*command) for _ in range(times)]
    return {"ms": sum(each["ms"] for each in found) / times, "mib": found[0]["mib"]}


def start() -> Figures:
    base = repeated(20, sys.executable, "-c", "pass")
    ours = repeated(20, MSAUTO, "--version")
    return {
        "base": base["ms"],
        "msauto": ours["ms"],
        "ratio": ours["ms"] / base["ms"],
        "mib": ours["mib"],
    }


def started(*arguments: str) -> Figures:
    """Return the CPU milliseconds and peak memory of a command in a small repository, ``{folder}``."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "inventory.yml").write_text(
            "all: {hosts: {studio-a: {server: {url: 'http://studio-a:7901'}}}}"
        )
        Path(folder, "one.yml").write_text("".join(named(1)))
        Path(folder, "own.toml").write_text("[limits]\nremove_items = 5")
        ours = repeated(10, *(each.format(folder=folder) for each in arguments))
    return {"msauto": ours["ms"], "mib": ours["mib"]}


def one_asset() -> Figures:
    base = repeated(20, sys.executable, "-c", "pass")
    with media_server(10) as url, tempfile.TemporaryDirectory() as folder:
        book = Path(folder) / "one.yml"
        book.write_text("".join(named(1)))
        ours = repeated(
            5, MSAUTO, "plan", str(book), "--server", url, "--state-dir", f"{folder}/state"
        )
    return {
        "base": base["ms"],
        "msauto": ours["ms"],
        "ratio": ours["ms"] / base["ms"],
        "mib": ours["mib"],
    }


def load(size: int) -> Figures:
    """Compare loading and validating with pulling libyaml's events."""
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as book:
        book.writelines(named(size))
        book.flush()
        base, ours = side("yaml events", size, book.name), side("load", size, book.name)
    return {
        "base": base["cpu"] * 1e3,
        "msauto": ours["cpu"] * 1e3,
        "ratio": ours["cpu"] / base["cpu"],
        "mib": ours["mib"],
    }


def listing(size: int) -> Figures:
    """Compare reading a listing with pulling its clips with lxml, on a document with all documented attributes."""
    with tempfile.NamedTemporaryFile(suffix=".xml") as file:
        file.writelines(part.encode() for part in stored_tree(size))
        file.flush()
        base, ours = side("listing pulled", size, file.name), side("listing", size, file.name)
    return {
        "base": base["cpu"] / size * 1e6,
        "msauto": ours["cpu"] / size * 1e6,
        "ratio": ours["cpu"] / base["cpu"],
        "mib": ours["mib"],
    }


def stored_tree(count: int) -> Iterator[str]:
    """Yield a StoredTree with all attributes (interface, «Asset»), with 1000 clips in each folder."""
    yield '<?xml version="1.0" encoding="utf-8"?>\n<StoredTree query_root=""><Folder name="">\n'
    for number in range(count):
        if number % 1000 == 0:
            yield ("</Folder>\n" if number else "") + f'<Folder name="Архив {number // 1000}">\n'
        yield CLIP.format(n=number, frames=250 + number % 5000, day=1 + number % 28)
    yield "</Folder></Folder></StoredTree>"


CASES = (
    Case("start: --version", "ms", start, goal=3),
    Case("start: plan --help", "ms", lambda: started(MSAUTO, "plan", "--help"), goal=150),
    Case("start: completion", "ms", lambda: started(*COMPLETE), goal=100),
    Case("start: history", "ms", lambda: started(*HISTORY), goal=150),
    Case(
        "start: history, settings",
        "ms",
        lambda: started(*HISTORY, "--config", "{folder}/own.toml"),
        goal=150,
    ),
    Case(
        "start: vars",
        "ms",
        lambda: started(MSAUTO, "vars", "studio-a", "-i", "{folder}/inventory.yml"),
        goal=150,
    ),
    Case("start: validate", "ms", lambda: started(MSAUTO, "validate", "{folder}"), goal=150),
    Case("start: doc asset", "ms", lambda: started(MSAUTO, "doc", "asset"), goal=150),
    Case("start: plan of one asset", "ms", one_asset, goal=35),
    Case("load and validate, 200 KB", "ms", lambda: load(600)),
    Case(
        "plan by select, each asset", "µs", lambda: compared("plan select", "bare read"), goal=3.5
    ),
    Case(
        "plan by loop over a CSV, each", "µs", lambda: compared("plan loop", "bare read"), goal=6.5
    ),
    Case(
        "apply by select, each asset", "µs", lambda: compared("apply select", "bare write"), goal=4
    ),
    *(
        waiting("plan select", "bare read", *each)
        for each in ((1000, 5), (1000, 20), (1000, 50), (100, 20))
    ),
    *(waiting("apply select", "bare write", 1000, latency) for latency in (5, 20, 50)),
    Case("plan by loop: requests", "µs", lambda: compared("plan loop", "requests")),
    Case("plan by loop: Ansible", "µs", lambda: ansible(40), goal=1 / 300),
    Case("plan of 40,000 by select", "s", lambda: whole("plan select", 40_000)),
    Case("apply of 10,000 assets", "s", lambda: whole("apply select", 10_000)),
    Case("apply of 10,000, 1 % changed", "s", lambda: night(10_000)),
    Case("3,200 markers, half changed", "s", lambda: half_of_the_markers(3200), goal=2),
    Case("undo of 4,000, each; of 1,000", "µs", lambda: undo(4000, 1000), goal=1.05),
    Case("listing of 350,000 clips, each", "µs", lambda: listing(350_000), goal=2),
    Case("select 100 of 100,000 clips", "s", lambda: whole("plan few", 100_000)),
    Case("HTML of 5,000 targets: size", "kB", lambda: html_report.size(5000), goal=1000),
    Case("HTML of 5,000 targets: opening", "s", lambda: html_report.opening(5000), goal=2),
)
