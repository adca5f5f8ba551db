"""Runs the examples of one page as a reader would: in an empty folder, beside a simulator, one after the other."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click

from msauto.cli.main import main
from msauto.plugins.simulator.embedded import SimDialect, Simulator, state_from_seed
from msauto.plugins.simulator.simulate import command as simulate
from tests.docs.pages import ROOT, Block

HOME = "127.0.0.1:7901"
"""The address of the simulator in the pages; in a test it takes any free port."""
_ASKS = re.compile(
    r"(?:Only 'yes' goes on|Type the number to go on|Type (?:'yes'|the number) to continue): ?(?P<answer>\S*)$",
    re.MULTILINE,
)

_REDRAWN = re.compile(r"\r\x1b\[2K(?:[^\r\n]*(?=\r))?")
"""What erases a line of progress, with the line that follows until it is erased as well."""
_ENDS = re.compile(r"^(?P<how>\^C|Killed)$", re.MULTILINE)
"""How a page shows that a command did not end by itself: what a shell prints of it."""


@dataclass(frozen=True)
class Step:
    """One command of a transcript, and its output in the page."""

    command: str
    expected: str


def steps(body: str) -> list[Step]:
    """Cut a transcript into its commands; a line that ends in a backslash goes on."""
    found: list[Step] = []
    for part in re.split(r"^(?=\$ )", body, flags=re.MULTILINE):
        if part.startswith("$ "):
            command, _, expected = part[2:].partition("\n")
            while command.endswith("\\"):
                more, _, expected = expected.partition("\n")
                command = command.removesuffix("\\") + more.strip()
            found.append(Step(command, expected.rstrip("\n")))
    return found


class _Terminal(io.StringIO):
    """Standard input at a terminal: what is typed shows in the output, as a terminal would echo it."""

    def __init__(self, answers: str, echo: io.StringIO) -> None:
        super().__init__(answers)
        self._echo = echo

    def isatty(self) -> bool:
        return True

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]
        line = super().readline(size)
        self._echo.write(line)
        return line


class _Screen(io.StringIO):
    """Output to a terminal, which msauto colours."""

    def isatty(self) -> bool:
        return True


@dataclass
class Session:
    """The state of one page: its folder, its simulator, the exit code of the last command."""

    folder: Path
    server: Simulator
    code: int = 0
    colour: bool = False
    names: dict[str, object] = field(default_factory=dict)

    def write(self, block: Block) -> None:
        """Make the file that a block shows."""
        assert block.file is not None
        path = self.folder / block.file
        path.parent.mkdir(parents=True, exist_ok=True)
        # Only YAML and TOML have comments: the line that names the file is not part of a CSV or an EDL.
        body = block.body.partition("\n")[2] if path.suffix in {".csv", ".edl"} else block.body
        path.write_text(self._here(body), encoding="utf-8")

    def run(self, step: Step) -> str:
        """Run one command of a transcript and return all that it prints."""
        words = shlex.split(self._here(step.command))
        commands: dict[str, Callable[[Sequence[str], Step], str]] = {
            "msauto": self._msauto,
            "curl": self._curl,
            "pytest": self._pytest,
            "echo": lambda *_: str(self.code),
        }
        while "=" in words[0]:
            name, _, value = words.pop(0).partition("=")
            os.environ[name] = value
        return self._told(commands[words[0]](words[1:], step)).rstrip("\n")

    def python(self, block: Block) -> str:
        """Run a block of Python and return what it prints."""
        out = io.StringIO()
        self.names["__name__"] = "docs"
        with contextlib.redirect_stdout(out):
            exec(compile(self._here(block.body), str(block), "exec"), self.names)
        return self._told(out.getvalue()).rstrip("\n")

    def _pytest(self, words: Sequence[str], step: Step) -> str:
        del step
        plugins = (
            "-p",
            "msauto.plugins.simulator.pytest_fixture",
            "-p",
            "no:cacheprovider",
            "--strict-markers",
            "-W",
            "error",
        )
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *plugins, *words],
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            capture_output=True, text=True,
        )  # fmt: skip
        return done.stdout

    def _msauto(self, words: Sequence[str], step: Step) -> str:
        if words[0] == "simulate":
            return self._simulate(words[1:])
        ending = _ENDS.search(step.expected)
        if ending is not None:
            return self._ended(words, ending["how"])
        out = _Screen() if self.colour else io.StringIO()
        answers = "".join(f"{match['answer']}\n" for match in _ASKS.finditer(step.expected))
        stdin = _Terminal(answers, out) if answers else io.StringIO()
        before, sys.stdin = sys.stdin, stdin
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
                self.code = main(words)
        finally:
            sys.stdin = before
        return _REDRAWN.sub("", out.getvalue())

    def _ended(self, words: Sequence[str], how: str) -> str:
        """Run in a separate process, and end it as the page describes once its first write is under way."""
        self.server.clear_log()
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
        process = subprocess.Popen(
            [sys.executable, "-m", "msauto", *words],
            env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        with process:
            end = time.monotonic() + 30
            while not self.server.writes() and process.poll() is None and time.monotonic() < end:
                time.sleep(0.01)
            process.send_signal(signal.SIGINT if how == "^C" else signal.SIGKILL)
            out, err = process.communicate(timeout=30)
        self.code = 137 if process.returncode < 0 else process.returncode  # as a shell has it
        plan, _, result = out.partition("\n\nPlan:")
        sentence, _, result = result.partition("\n")
        return f"{plan}\n\nPlan:{sentence}\n{how}\n{err}{result}"

    def _simulate(self, words: Sequence[str]) -> str:
        """Start another simulator in place of the one that is there, with the flags of the page."""
        with simulate.make_context("simulate", list(words)) as context:
            given = context.params
        self.server.stop()
        self.server = Simulator(
            state_from_seed(given["seed"]),
            SimDialect.parse(given["dialect"]),
            given["faults"],
            port=self.server.port,
            restore_seconds=0.1,
        )
        self.server.start()
        return f"A media server listens at {self.server.url} (Ctrl-C stops it)."

    def _curl(self, words: Sequence[str], step: Step) -> str:
        del step
        method = words[words.index("-X") + 1] if "-X" in words else "GET"
        request = urllib.request.Request(words[-1], method=method)
        with urllib.request.urlopen(request, timeout=5) as answer:
            body: bytes = answer.read()
        return body.decode()

    def _here(self, text: str) -> str:
        return text.replace(HOME, f"127.0.0.1:{self.server.port}")

    def _told(self, text: str) -> str:
        return text.replace(f"127.0.0.1:{self.server.port}", HOME).replace(
            f"{self.folder}{os.sep}", ""
        )


@contextlib.contextmanager
def session(folder: Path, *, colour: bool = False) -> Iterator[Session]:
    """Change to an empty folder with a separate environment, beside a simulator."""
    environment, where = dict(os.environ), Path.cwd()
    looks = {"NO_COLOR": "" if colour else "1", "COLUMNS": "100"}
    os.environ.update(looks | {"XDG_STATE_HOME": str(folder / ".state")})
    os.chdir(folder)
    running = Session(folder, Simulator(restore_seconds=0.1), colour=colour)
    running.server.start()
    try:
        yield running
    finally:
        running.server.stop()
        os.chdir(where)
        os.environ.clear()
        os.environ.update(environment)


# What is the same ------------------------------------------------------------------------------------------------

_VARYING = (
    (re.compile(r"in \d+\.\d\ds\b"), "in 0s"),  # pytest
    (re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{4}"), "RUN"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:\+00:00|Z)"), "NOW"),
    (re.compile(r"[A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d [A-Z+\d-]+"), "NOW"),
    (re.compile(r"NOW  \d+ s +"), "NOW  TOOK  "),
    (re.compile(r"\b\w+@[\w.-]+$", re.MULTILINE), "USER@HOST"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "SHA256"),
    (re.compile(r"process +\d+ on [^\s,)]+"), "process PID on HOST"),
    (re.compile(r"\s+in (?:(?:under )?\d+\.\d|\d{2,}) s\b"), ""),
    (re.compile(r"[ \t]+$", re.MULTILINE), ""),
)


def alike(expected: str, actual: str) -> bool:
    """Return whether a page's output is the real one; ``...`` on a line of its own stands for any lines.

    Lines may be broken elsewhere: how long a run took changes where a sentence is wrapped.
    """
    parts = re.split(r"^ *\.\.\.\n?", _plain(expected) + "\n", flags=re.MULTILINE)
    pattern = r"(?:.*\n)*?".join(re.sub(r"(?:\\?\s)+", r"\\s+", re.escape(part)) for part in parts)
    return re.fullmatch(pattern, _plain(actual) + "\n") is not None


def _plain(text: str) -> str:
    for pattern, word in _VARYING:
        text = pattern.sub(word, text)
    return click.unstyle(text).strip("\n")
