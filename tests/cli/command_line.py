"""The command line as a test sees it: a folder with an inventory, msauto in this process, and in one of its own."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from msauto.cli.main import main
from tests.tables import yaml_text

GOLDEN = Path(__file__).parent / "golden"
MSAUTO = [sys.executable, "-m", "msauto"]


@dataclass(frozen=True)
class Said:
    """The output of a command, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """stdout as JSON: fails where anything else is on it."""
        return json.loads(self.out)

    def one_error(self, *words: str) -> None:
        """The output holds one error with these words and a remedy, and no traceback."""
        assert "Traceback" not in self.err + self.out, self.err
        assert "msauto itself failed" not in self.err, self.err
        told = self.err + self.out
        for word in words:
            assert word in told, (word, told)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@dataclass
class Desk:
    """A working directory, with ``inventory.yml`` for a server, and a state folder of its own."""

    folder: Path
    url: str = "http://127.0.0.1:1"
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.inventory({"studio-a": {"server": {"url": self.url}, "database": "NEWS"}})

    @property
    def state(self) -> Path:
        return self.folder / "state"

    def inventory(self, hosts: Mapping[str, Any], name: str = "inventory.yml") -> None:
        self.write(name, {"all": {"hosts": dict(hosts)}})

    def write(self, name: str, content: Any) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif isinstance(content, str):
            path.write_text(content, encoding="utf-8")
        else:
            path.write_text(yaml_text(content), encoding="utf-8")
        return name

    def play(self, *tasks: Mapping[str, Any], name: str = "play.yml", hosts: str = "all") -> str:
        numbered = [{"name": f"Task {n}", **task} for n, task in enumerate(tasks, 1)]
        return self.write(name, [{"name": "A play", "hosts": hosts, "tasks": numbered}])

    def comment(self, text: str, title: str = "EP001", name: str = "play.yml") -> str:
        return self.play({"asset": {"title": title, "fields": {"comment": text}}}, name=name)

    def run(self, *arguments: str, typed: str | None = None) -> Said:
        """Run in this process; ``typed`` is the input at a terminal, ``None``: there is no terminal."""
        out, err = io.StringIO(), io.StringIO()
        stdin: io.StringIO = io.StringIO() if typed is None else Terminal(typed)
        with self._standing(), mock.patch.multiple(sys, stdout=out, stderr=err, stdin=stdin):
            code = main(list(arguments))
        return Said(code, out.getvalue(), err.getvalue())

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        """Start a process of its own."""
        options = {
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "stdin": subprocess.DEVNULL,
        } | options
        return subprocess.Popen(
            [*MSAUTO, *arguments],
            cwd=self.folder,
            env=self.surroundings(),
            text=True,
            encoding="utf-8",
            **options,
        )

    def spawn(self, *arguments: str, **options: Any) -> Said:
        """Run in a process of its own."""
        with self.start(*arguments, **options) as process:
            try:
                out, err = process.communicate(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        return Said(process.returncode, out or "", err or "")

    def surroundings(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        source = str(Path(__file__).parents[2])
        cache = str(self.folder.parent / f"{self.folder.name}-cache")
        folders = {"PYTHONPATH": source, "XDG_STATE_HOME": str(self.state), "XDG_CACHE_HOME": cache}
        return {**kept, **folders, "COLUMNS": "200", **self.environment}

    @contextmanager
    def _standing(self) -> Iterator[None]:
        before = Path.cwd()
        os.chdir(self.folder)
        try:
            with mock.patch.dict(os.environ, self.surroundings(), clear=True):
                yield
        finally:
            os.chdir(before)

    def files(self) -> set[str]:
        return {
            str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file()
        }


_CHANGING = (
    (re.compile(r"127\.0\.0\.1:\d+"), "HOST:PORT"),
    (re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{4}"), "RUN"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"), "TIME"),
    (re.compile(r"[A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d [A-Z+\d-]+"), "TIME"),
    (re.compile(r"TIME  \d+ s +"), "TIME  TOOK  "),
    (re.compile(r"(process|pid\":) +\d+( on \S+,)?"), r"\1 PID"),
    (re.compile(r"\"host\": \"[^\"]+\""), '"host": "HERE"'),
    (re.compile(r"(sha256:)?[0-9a-f]{64}"), "SHA256"),
    (re.compile(r" in (?:(?:under )?\d+\.\d|\d{2,}) s\b"), " in DURATION"),
    (re.compile(r"\b([Pp]lan)([= ]`?)[0-9a-f]{12}\b"), r"\1\2DIGEST"),
)


def check_golden(name: str, text: str, *hidden: tuple[str, str]) -> None:
    """Compare with a file of ``golden/``; ``MSAUTO_WRITE_CASES=1`` writes the output of now: read it first."""
    for old, new in hidden:
        text = text.replace(old, new)
    for pattern, word in _CHANGING:
        text = pattern.sub(word, text)
    path = GOLDEN / name
    if os.environ.get("MSAUTO_WRITE_CASES"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
