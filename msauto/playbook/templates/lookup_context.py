"""What templates may read: the environment, and files of the repository."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from msauto.errors import InputError
from msauto.playbook.input_files import Files
from msauto.playbook.templates.secret_tracking import TemplateFunctionError


@dataclass(frozen=True, slots=True)
class LookupContext:
    """What templates may read: the environment, and files inside the repository of the playbook.

    ``opened`` are further folders that the settings open (``[lookup] folders``); ``writable`` are those that downloads
    may be written to (``[download] folders``).
    """

    env: Mapping[str, str]
    files: Files
    folder: Path
    root: Path
    opened: Sequence[str] = ()
    writable: Sequence[str] = ()

    def path(self, name: str) -> str:
        """Return the path of a file beside the playbook."""
        return str(self.folder / name)

    def read(self, name: str) -> bytes:
        """Return the bytes of a file beside the playbook; raises :class:`TemplateFunctionError` for one outside."""
        data = self.content(name)
        if self.files.taint.found.occurs_in(data.decode("utf-8", "replace")):
            self.files.taint.touch()
        return data

    def content(self, name: str) -> bytes:
        """Return the bytes as :meth:`read` does, whether or not they hold a secret."""
        path = Path(self.path(name))
        try:
            folders = [self.root, *map(Path, self.opened)]
            inside = any(path.resolve().is_relative_to(folder.resolve()) for folder in folders)
        except (OSError, ValueError, RuntimeError) as error:
            raise TemplateFunctionError(f"cannot read the file {name!r}") from error
        if not inside:
            remedy = "copy it there, or open its folder in msauto.toml: [lookup] folders"
            raise TemplateFunctionError(f"the file {name!r} is outside the playbook's repository", remedy)
        try:
            return self.files.read(str(path))
        except InputError as error:
            (problem,) = error.problems
            raise TemplateFunctionError(f"{name!r}: {problem.message}", problem.remedy) from error

    def text(self, name: str) -> str:
        """Return the text of a file; raises as :meth:`read`."""
        try:
            return self.read(name).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise TemplateFunctionError(f"the file {name!r} is not UTF-8", "save it as UTF-8") from error
