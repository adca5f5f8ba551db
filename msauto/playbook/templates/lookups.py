"""``lookup()`` and ``query()``: what templates may read from outside, and no further than the repository."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import pass_context
from jinja2.runtime import Context

from msauto.errors import InputError
from msauto.playbook.files import Files
from msauto.playbook.templates.taint import TemplateFunctionError
from msauto.playbook.yaml.document import nearest
from msauto.playbook.yaml.loader import load_yaml, plain

# lookup() -------------------------------------------------------------------------------------------------------


@pass_context
def lookup(context: Context, kind: str, *names: str, **options: Any) -> Any:
    """Read a file of the repository, or the environment: ``lookup("csv", "promos.csv")``."""
    found = _looked_up(context, kind, names, options)
    return found[0] if len(found) == 1 else found


@pass_context
def query(context: Context, kind: str, *names: str, **options: Any) -> list[Any]:
    """The same as a list, whatever was found: Ansible's ``query`` and ``q``."""
    found = _looked_up(context, kind, names, options)
    return [item for each in found for item in (each if isinstance(each, list) else [each])]


def _looked_up(context: Context, kind: str, names: tuple[str, ...], options: dict[str, Any]) -> list[Any]:
    surroundings: LookupContext = context.parent["__scope__"].surroundings
    reader = LOOKUPS.get(kind)
    if reader is None:
        raise TemplateFunctionError(f"there is no lookup {kind!r}", nearest(str(kind), LOOKUPS))
    if not names:
        raise TemplateFunctionError(f"lookup({kind!r}) needs a name")
    unknown = next((name for name in options if name not in _OPTIONS.get(kind, ())), None)
    if unknown is not None:
        raise TemplateFunctionError(
            f"lookup({kind!r}) has no option {unknown!r}", nearest(unknown, _OPTIONS.get(kind, ()))
        )
    return [reader(surroundings, str(name), options) for name in names]


class LookupContext:
    """What templates may reach outside: the environment, and files inside the repository of the playbook.

    ``opened`` are further folders that the settings open (``[lookup] folders``), ``writable`` those that downloads may
    be written to (``[download] folders``).
    """

    __slots__ = ("env", "files", "folder", "opened", "root", "writable")

    def __init__(
        self,
        env: Mapping[str, str],
        files: Files,
        folder: Path,
        root: Path,
        opened: Sequence[str] = (),
        writable: Sequence[str] = (),
    ) -> None:
        self.env = env
        self.files = files
        self.folder = folder
        self.root = root
        self.opened = opened
        self.writable = writable

    def _open(self) -> Iterator[Path]:
        yield self.root
        yield from map(Path, self.opened)

    def read(self, name: str) -> bytes:
        """Return the bytes of a file beside the playbook; raises :class:`TemplateFunctionError` for one outside."""
        path = self.folder / name
        try:
            inside = any(path.resolve().is_relative_to(each.resolve()) for each in self._open())
        except (OSError, ValueError, RuntimeError) as error:
            raise TemplateFunctionError(f"the file {name!r} cannot be read") from error
        if not inside:
            raise TemplateFunctionError(
                f"the file {name!r} is outside the playbook's repository",
                "copy it there, or open its folder in msauto.toml: [lookup] folders",
            )
        try:
            return self.files.read(str(path))
        except InputError as error:
            (problem,) = error.problems
            raise TemplateFunctionError(f"{name!r}: {problem.message}", problem.remedy) from error


def _lookup_env(around: LookupContext, name: str, options: dict[str, Any]) -> Any:
    if name in around.env:
        return around.env[name]
    if "default" in options:
        return options["default"]
    raise TemplateFunctionError(f"the environment variable {name} is not set", "set it, or add default=''")


def _file_text(around: LookupContext, name: str) -> str:
    try:
        return around.read(name).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TemplateFunctionError(f"the file {name!r} is not UTF-8", "save it as UTF-8") from error


def _lookup_file(around: LookupContext, name: str, options: dict[str, Any]) -> str:
    del options
    return _file_text(around, name).rstrip("\n")


def _lookup_lines(around: LookupContext, name: str, options: dict[str, Any]) -> list[str]:
    del options
    return _file_text(around, name).splitlines()


def _lookup_json(around: LookupContext, name: str, options: dict[str, Any]) -> Any:
    del options
    try:
        return json.loads(_file_text(around, name))
    except (ValueError, RecursionError) as error:
        raise TemplateFunctionError(f"the file {name!r} is no JSON: {error}") from error


def _lookup_yaml(around: LookupContext, name: str, options: dict[str, Any]) -> Any:
    del options
    try:
        data = load_yaml(around.read(name), name).data
    except InputError as error:
        raise TemplateFunctionError(str(error.problems[0])) from error
    around.files.taint.add_tagged(data, templates=True)  # what is looked up is not rendered
    return plain(data, marks=True)


def _lookup_csv(around: LookupContext, name: str, options: dict[str, Any]) -> list[dict[str, str]]:
    """A list of rows by the names of the header; all values are text."""
    delimiter = str(options.get("delimiter", ","))
    rows = csv.DictReader(io.StringIO(_file_text(around, name), newline=""), delimiter=delimiter, restkey="_more")
    try:
        found = list(rows)
    except (csv.Error, TypeError) as error:
        raise TemplateFunctionError(f"the file {name!r} is no CSV: {error}") from error
    for row in found:
        if "_more" in row or None in row.values():
            number = found.index(row) + 1
            raise TemplateFunctionError(f"row {number} of {name!r} has not as many values as the header has names")
    return found


LOOKUPS: dict[str, Callable[[LookupContext, str, dict[str, Any]], Any]] = {
    "csv": _lookup_csv,
    "json": _lookup_json,
    "yaml": _lookup_yaml,
    "file": _lookup_file,
    "lines": _lookup_lines,
    "env": _lookup_env,
}

_OPTIONS = {"csv": ("delimiter",), "env": ("default",)}
