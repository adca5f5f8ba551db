"""The files of ``msauto export --format edl|otio|csv|vtt``: one for each asset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msauto.cli.output import print_result
from msauto.errors import MsautoError, RefusedError
from msauto.file_writing import FileNames, write_file
from msauto.model.live import AssetSnapshot
from msauto.playbook.export import TimelineForm


class TimelineFiles:
    """A file for each asset in a folder; without a folder, one timeline for stdout.

    A file with other contents is replaced only with ``force``.
    """

    def __init__(self, form: TimelineForm, folder: Path | None, *, force: bool) -> None:
        self._form = form
        self._folder = folder
        self._force = force
        self._names = FileNames()
        self._text: str | None = None
        self.written: list[Path] = []

    def add(self, folder: tuple[str, ...], snapshot: AssetSnapshot) -> tuple[str, ...]:
        """Write an asset, or keep it for stdout; return the warnings. Raises :class:`TimelineError`."""
        timeline = self._form.write(snapshot)
        if self._folder is not None:
            names = (*folder, snapshot.asset.title or snapshot.title)
            self._write(self._folder / self._names.path(names, f".{self._form.ending}"), timeline.text)
        elif self._text is None:
            self._text = timeline.text
        else:
            raise MsautoError("stdout takes one timeline", remedy="name one --title, or write files with --out DIR")
        return timeline.warnings

    def finish(self) -> None:
        """Print the timeline, if it is not in a file."""
        if self._text is not None:
            print_result(self._text)

    def close(self) -> None:
        """Close nothing: each file is complete once it is written."""

    def expect(self, plays: Iterable[object]) -> None:
        """Accept any plays: each file is checked before it is written."""

    def _write(self, path: Path, text: str) -> None:
        assert self._folder is not None
        with file_errors(path):
            make_folder(path.parent, self._folder)
            if path.exists() and not self._force and path.read_bytes() != text.encode():
                raise RefusedError(
                    f"{path} has other contents", remedy="overwrite it with --force, or use another --out"
                )
            write_file(path, [text])
        self.written.append(path)


def make_folder(folder: Path, root: Path) -> None:
    """Make a folder of an export; one that a link leads out of ``root`` is refused."""
    if not folder.resolve().is_relative_to(root.resolve()):
        raise RefusedError(f"{folder} leads out of {root}", remedy="remove the link, or use another --out")
    folder.mkdir(parents=True, exist_ok=True)


@contextmanager
def file_errors(path: Path) -> Iterator[None]:
    """Name the file that cannot be read or written, and the reason."""
    try:
        yield
    except OSError as error:
        raise MsautoError(f"cannot write {path}: {error.strerror or error}", remedy="use another --out") from error
