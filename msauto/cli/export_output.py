"""Where exported playbooks go: stdout as one, or a folder with a file for each part; whole, or not at all."""

from __future__ import annotations

import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO

from msauto.cli.output import give
from msauto.errors import MsautoError, RefusedError
from msauto.playbook.export.file_names import FileNames
from msauto.playbook.export.playbook_writer import HEADER, header_lines


@dataclass(frozen=True, slots=True)
class ExportedPlay:
    """One play of an export: the names that its file is called by, from the outside in, and what it is of."""

    names: tuple[str, ...]
    about: str


class ExportOutput(ABC):
    """Takes the lines of parts, one part after the other."""

    @abstractmethod
    def expect(self, parts: Iterable[ExportedPlay]) -> None:
        """Look, before anything is read, whether these parts can be written; raises ``RefusedError``."""

    @abstractmethod
    def part(self, part: ExportedPlay) -> None:
        """Begin a part."""

    @abstractmethod
    def write(self, lines: Iterable[str]) -> None:
        """Add lines to the part."""

    @abstractmethod
    def done(self) -> None:
        """Keep the part."""

    @abstractmethod
    def finish(self) -> None:
        """Hand on what was written."""

    @abstractmethod
    def drop(self) -> None:
        """Leave no half part behind."""


class StdoutExport(ExportOutput):
    """All parts as one playbook, which is given once it is whole."""

    def __init__(self) -> None:
        self._file: IO[str] = tempfile.SpooledTemporaryFile(1 << 20, "w+", encoding="utf-8", newline="\n")  # noqa: SIM115
        self._parts = 0

    def expect(self, parts: Iterable[ExportedPlay]) -> None:
        """Nothing can stand in the way."""
        del parts

    def part(self, part: ExportedPlay) -> None:
        """Begin a play."""
        self.write(header_lines(part.about) if not self._parts else [""])
        self._parts += 1

    def write(self, lines: Iterable[str]) -> None:
        """Add lines."""
        self._file.writelines(f"{line}\n" for line in lines)

    def done(self) -> None:
        """Nothing to do."""

    def finish(self) -> None:
        """Copy all to stdout; a playbook without plays where there is nothing."""
        if not self._parts:
            self.write([*header_lines("nothing"), "[]"])
        self._file.seek(0)
        while lines := list(islice(self._file, 10_000)):
            give("".join(lines))
        self._file.close()

    def drop(self) -> None:
        """Forget all."""
        self._file.close()


class FolderExport(ExportOutput):
    """A file for each part, below one folder. A file that msauto did not export stays, unless ``force``."""

    def __init__(self, folder: Path, *, force: bool) -> None:
        self._folder = folder
        self._force = force
        self._names = FileNames()
        self._paths: dict[tuple[str, ...], Path] = {}
        self._file: IO[str] | None = None
        self._target = folder
        self.written: list[Path] = []

    def expect(self, parts: Iterable[ExportedPlay]) -> None:
        """Refuse before anything is read or written where a file of somebody else stands in the way."""
        taken = [path for part in parts if not self._may_replace(path := self._path(part))]
        if taken:
            raise RefusedError(
                f"not exported by msauto, and not overwritten: {', '.join(map(str, taken[:5]))}",
                remedy="--force, or another --out",
            )

    def part(self, part: ExportedPlay) -> None:
        """Begin a file beside the one that it will replace."""
        self._target = self._path(part)
        with _told(self._target):
            self._target.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._beside().open("w", encoding="utf-8", newline="\n")
        self.write(header_lines(part.about))

    def write(self, lines: Iterable[str]) -> None:
        """Add lines to the file."""
        if self._file is None:
            raise RuntimeError("no part has begun")
        with _told(self._target):
            self._file.writelines(f"{line}\n" for line in lines)

    def done(self) -> None:
        """Put the file in its place, whole."""
        if self._file is None:
            return
        with _told(self._target):
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._beside().replace(self._target)
        self._file = None
        self.written.append(self._target)

    def finish(self) -> None:
        """Nothing to do: each file is in its place already."""

    def drop(self) -> None:
        """Remove a file that is not whole."""
        if self._file is not None:
            self._file.close()
            self._beside().unlink(missing_ok=True)

    def stale(self, below: Sequence[str]) -> list[Path]:
        """Return files of earlier exports of all that is below, which this one did not write again."""
        top = self._names.path(below, "")
        found = sorted((self._folder / top).rglob("*.yml"))
        return [path for path in found if path not in self.written and _is_ours(path)]

    def _path(self, part: ExportedPlay) -> Path:
        if part.names not in self._paths:
            self._paths[part.names] = self._folder / self._names.path(part.names)
        return self._paths[part.names]

    def _beside(self) -> Path:
        return self._target.with_name(f"{self._target.name}.part")

    def _may_replace(self, path: Path) -> bool:
        return self._force or not path.exists() or _is_ours(path)


def _is_ours(path: Path) -> bool:
    with _told(path):
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.readline(256).startswith(f"# {HEADER}".encode())


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Tell which file cannot be read or written, and why."""
    try:
        yield
    except OSError as error:
        raise MsautoError(
            f"{path} cannot be written: {error.strerror or error}", remedy="name another --out"
        ) from error
