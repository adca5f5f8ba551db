"""Ansible's everyday filters and tests, ``lookup()``, and this field's own filters for time codes."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import itertools
import json
import posixpath
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jinja2 import pass_context
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context, Undefined

from msauto.errors import InputError
from msauto.playbook.document import nearest
from msauto.playbook.files import Files
from msauto.playbook.timefilters import TIME_FILTERS
from msauto.playbook.yaml import dump_yaml, load_yaml, plain

MAX_PATTERN = 1_000
MAX_SUBJECT = 100_000
MAX_PRODUCT = 100_000


class OutsideError(Exception):
    """A lookup that cannot be answered; ``remedy`` says what to do."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


# lookup() -------------------------------------------------------------------------------------------------------


@pass_context
def lookup(context: Context, kind: str, *names: str, **options: Any) -> Any:
    """Read a file of the repository, or the environment: ``lookup("csv", "promos.csv")``."""
    surroundings: Surroundings = context.parent["__scope__"].surroundings
    reader = _LOOKUPS.get(kind)
    if reader is None:
        raise OutsideError(f"there is no lookup {kind!r}", nearest(str(kind), _LOOKUPS))
    if not names:
        raise OutsideError(f"lookup({kind!r}) needs a name")
    found = [reader(surroundings, str(name), options) for name in names]
    return found[0] if len(found) == 1 else found


class Surroundings:
    """What templates may reach outside: the environment, and files inside the repository of the playbook."""

    __slots__ = ("env", "files", "folder", "root")

    def __init__(self, env: Mapping[str, str], files: Files, folder: Path, root: Path) -> None:
        self.env = env
        self.files = files
        self.folder = folder
        self.root = root

    def read(self, name: str) -> bytes:
        """Return the bytes of a file beside the playbook; :class:`OutsideError` if it is outside the repository."""
        path = self.folder / name
        try:
            inside = path.resolve().is_relative_to(self.root.resolve())
        except (OSError, ValueError, RuntimeError) as error:
            raise OutsideError(f"the file {name!r} cannot be read") from error
        if not inside:
            raise OutsideError(f"the file {name!r} is outside the playbook's repository", "copy it into the repository")
        try:
            return self.files.read(str(path))
        except InputError as error:
            raise OutsideError(f"{name!r}: {error.problems[0].message}") from error


def _lookup_env(around: Surroundings, name: str, options: dict[str, Any]) -> Any:
    if name in around.env:
        return around.env[name]
    if "default" in options:
        return options["default"]
    raise OutsideError(f"the environment variable {name} is not set", "set it, or add default=''")


def _file_text(around: Surroundings, name: str) -> str:
    try:
        return around.read(name).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise OutsideError(f"the file {name!r} is not UTF-8", "save it as UTF-8") from error


def _lookup_file(around: Surroundings, name: str, options: dict[str, Any]) -> str:
    del options
    return _file_text(around, name).rstrip("\n")


def _lookup_lines(around: Surroundings, name: str, options: dict[str, Any]) -> list[str]:
    del options
    return _file_text(around, name).splitlines()


def _lookup_json(around: Surroundings, name: str, options: dict[str, Any]) -> Any:
    del options
    try:
        return json.loads(_file_text(around, name))
    except (ValueError, RecursionError) as error:
        raise OutsideError(f"the file {name!r} is no JSON: {error}") from error


def _lookup_yaml(around: Surroundings, name: str, options: dict[str, Any]) -> Any:
    del options
    try:
        return plain(load_yaml(around.read(name), name).data)
    except InputError as error:
        raise OutsideError(str(error.problems[0])) from error


def _lookup_csv(around: Surroundings, name: str, options: dict[str, Any]) -> list[dict[str, str]]:
    """A list of rows by the names of the header; all values are text."""
    delimiter = str(options.get("delimiter", ","))
    rows = csv.DictReader(io.StringIO(_file_text(around, name), newline=""), delimiter=delimiter, restkey="_more")
    try:
        found = list(rows)
    except (csv.Error, TypeError) as error:
        raise OutsideError(f"the file {name!r} is no CSV: {error}") from error
    for row in found:
        if "_more" in row or None in row.values():
            number = found.index(row) + 1
            raise OutsideError(f"row {number} of {name!r} has not as many values as the header has names")
    return found


_LOOKUPS: dict[str, Callable[[Surroundings, str, dict[str, Any]], Any]] = {
    "csv": _lookup_csv,
    "json": _lookup_json,
    "yaml": _lookup_yaml,
    "file": _lookup_file,
    "lines": _lookup_lines,
    "env": _lookup_env,
}

# Filters --------------------------------------------------------------------------------------------------------


def _combine(first: Any, *others: Any, recursive: bool = False) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for each in (first, *others):
        if not isinstance(each, Mapping):
            raise TypeError("combine needs mappings")
        result = _combined(result, each, recursive)
    return result


def _combined(left: Mapping[str, Any], right: Mapping[str, Any], recursive: bool) -> dict[str, Any]:
    result = dict(left)
    for key, value in right.items():
        both = recursive and isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
        result[key] = _combined(result[key], value, recursive) if both else value
    return result


def _pattern(pattern: Any, subject: Any, ignorecase: bool = False, multiline: bool = False) -> re.Pattern[str]:
    if len(str(pattern)) > MAX_PATTERN or len(str(subject)) > MAX_SUBJECT:
        raise SecurityError("a regular expression or its text is too long")
    return re.compile(str(pattern), (re.IGNORECASE if ignorecase else 0) | (re.MULTILINE if multiline else 0))


def _regex_replace(
    value: Any, pattern: str, replacement: str = "", ignorecase: bool = False, multiline: bool = False
) -> str:
    return _pattern(pattern, value, ignorecase, multiline).sub(str(replacement), str(value))


def _regex_search(value: Any, pattern: str, *groups: str, ignorecase: bool = False, multiline: bool = False) -> Any:
    r"""The match as text, or ``""``; with groups such as ``\1``, their texts."""
    match = _pattern(pattern, value, ignorecase, multiline).search(str(value))
    if match is None:
        return ""
    if not groups:
        return match.group()
    return [match[int(name[1:]) if name[1:].isdigit() else name.removeprefix("\\g<").rstrip(">")] for name in groups]


def _regex_findall(value: Any, pattern: str, ignorecase: bool = False, multiline: bool = False) -> list[Any]:
    return _pattern(pattern, value, ignorecase, multiline).findall(str(value))


def _to_json(value: Any, indent: int | None = None, sort_keys: bool = False) -> str:
    if indent is not None and indent > 16:
        raise SecurityError("the indentation is too wide")
    return json.dumps(plain(value), ensure_ascii=False, indent=indent, sort_keys=sort_keys, default=str)


def _items2dict(value: Any, key_name: str = "key", value_name: str = "value") -> dict[str, Any]:
    return {str(each[key_name]): each[value_name] for each in value}


def _dict2items(value: Any, key_name: str = "key", value_name: str = "value") -> list[dict[str, Any]]:
    if not isinstance(value, Mapping):
        raise TypeError("dict2items needs a mapping")
    return [{key_name: key, value_name: each} for key, each in value.items()]


def _product(*lists: Any) -> list[list[Any]]:
    pools = [list(each) for each in lists]
    size = 1
    for pool in pools:
        size *= len(pool)
        if size > MAX_PRODUCT:
            raise SecurityError(f"product makes more than {MAX_PRODUCT:,} items")
    return [list(each) for each in itertools.product(*pools)]


def _ternary(value: Any, yes: Any, no: Any, none: Any = None) -> Any:
    return none if value is None and none is not None else (yes if value else no)


def _hash(value: Any, kind: str = "sha1") -> str:
    if kind not in hashlib.algorithms_guaranteed or kind.startswith("shake"):
        raise ValueError(f"there is no hash {kind!r}; {nearest(kind, ['md5', 'sha1', 'sha256', 'sha512'])}")
    return hashlib.new(kind, str(value).encode(), usedforsecurity=False).hexdigest()


def _bool(value: Any) -> bool:
    if isinstance(value, str):
        text = value.strip().lower()
        if text in {"true", "yes", "on", "1", "y", "t"}:
            return True
        if text in {"false", "no", "off", "0", "n", "f", ""}:
            return False
        raise ValueError(f"{value[:40]!r} is neither true nor false")
    return bool(value)


def _int(value: Any, default: Any = None, base: int = 10) -> Any:
    """A whole number; unlike Jinja's own, what is no number is an error unless a default is given."""
    try:
        return int(value, base) if isinstance(value, str) else int(value)
    except (ValueError, TypeError, OverflowError):
        if default is None:
            raise
        return default


def _float(value: Any, default: Any = None) -> Any:
    try:
        return float(value)
    except (ValueError, TypeError, OverflowError):
        if default is None:
            raise
        return default


def _flatten(value: Any, levels: int | None = None) -> list[Any]:
    found: list[Any] = []
    for each in value:
        deeper = isinstance(each, list | tuple) and (levels is None or levels > 0)
        found.extend(_flatten(each, None if levels is None else levels - 1) if deeper else [each])
    return found


def _mandatory(value: Any) -> Any:
    if isinstance(value, Undefined):
        str(value)
    return value


# Tests ----------------------------------------------------------------------------------------------------------


def _match(value: Any, pattern: str, ignorecase: bool = False, multiline: bool = False) -> bool:
    return _pattern(pattern, value, ignorecase, multiline).match(str(value)) is not None


def _search(value: Any, pattern: str, ignorecase: bool = False, multiline: bool = False) -> bool:
    return _pattern(pattern, value, ignorecase, multiline).search(str(value)) is not None


def _version(value: Any, other: Any, operator: str = "==") -> bool:
    left, right = _version_key(value), _version_key(other)
    length = max(len(left), len(right))
    order = (left + (0,) * (length - len(left)) > right + (0,) * (length - len(right))) - (
        left + (0,) * (length - len(left)) < right + (0,) * (length - len(right))
    )
    signs = {"==": (0,), "eq": (0,), "=": (0,), "!=": (-1, 1), "ne": (-1, 1), "<": (-1,), "lt": (-1,)}
    signs |= {"<=": (-1, 0), "le": (-1, 0), ">": (1,), "gt": (1,), ">=": (0, 1), "ge": (0, 1)}
    if operator not in signs:
        raise ValueError(f"version knows no {operator!r}; {nearest(operator, signs)}")
    return order in signs[operator]


def _version_key(value: Any) -> tuple[int, ...]:
    if not re.fullmatch(r"\d{1,9}(\.\d{1,9})*", str(value)):
        raise ValueError(f"{str(value)[:40]!r} is no version")
    return tuple(int(part) for part in str(value).split("."))


FILTERS: dict[str, Callable[..., Any]] = {
    "combine": _combine,
    "regex_replace": _regex_replace,
    "regex_search": _regex_search,
    "regex_findall": _regex_findall,
    "regex_escape": lambda value: re.escape(str(value)),
    "to_json": _to_json,
    "from_json": lambda value: json.loads(str(value)),
    "to_yaml": dump_yaml,
    "from_yaml": lambda value: plain(load_yaml(str(value).encode(), "from_yaml").data),
    "dict2items": _dict2items,
    "items2dict": _items2dict,
    "zip": lambda *lists: [list(each) for each in zip(*lists, strict=False)],
    "product": _product,
    "ternary": _ternary,
    "basename": lambda value: posixpath.basename(str(value)),
    "dirname": lambda value: posixpath.dirname(str(value)),
    "splitext": lambda value: list(posixpath.splitext(str(value))),
    "split": lambda value, by=None: str(value).split(by),
    "hash": _hash,
    "b64encode": lambda value: base64.b64encode(str(value).encode()).decode(),
    "b64decode": lambda value: base64.b64decode(str(value), validate=True).decode(),
    "bool": _bool,
    "int": _int,
    "float": _float,
    "flatten": _flatten,
    "mandatory": _mandatory,
    "union": lambda first, second: list(dict.fromkeys([*first, *second])),
    "intersect": lambda first, second: [each for each in dict.fromkeys(first) if each in second],
    "difference": lambda first, second: [each for each in dict.fromkeys(first) if each not in second],
    **TIME_FILTERS,
}

TESTS: dict[str, Callable[..., bool]] = {
    "match": _match,
    "search": _search,
    "regex": _search,
    "version": _version,
    "subset": lambda value, other: all(each in other for each in value),
    "superset": lambda value, other: all(each in value for each in other),
}
