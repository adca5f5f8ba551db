"""Filters of texts: regular expressions, and parts of paths and addresses, POSIX and Windows."""

from __future__ import annotations

import ntpath
import posixpath
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import unquote_plus, urlsplit

from jinja2.exceptions import SecurityError

MAX_PATTERN = 1_000
MAX_SUBJECT = 100_000


def pattern(text: Any, subject: Any, ignorecase: bool = False, multiline: bool = False) -> re.Pattern[str]:
    """Compile a regular expression, unless it or its subject is too long, or it could take for ever."""
    if len(str(text)) > MAX_PATTERN or len(str(subject)) > MAX_SUBJECT:
        raise SecurityError("a regular expression or its text is too long")
    try:
        flags = (re.IGNORECASE if ignorecase else 0) | (re.MULTILINE if multiline else 0)
        compiled = re.compile(str(text), flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"the regular expression {str(text)[:60]!r} cannot be read: {error}") from error
    if _EVIL.search(str(text)) and len(str(subject)) > 16:
        raise SecurityError(f"the regular expression {str(text)[:60]!r} repeats a repetition: it could take for ever")
    return compiled


# A group that is nothing but a repetition, repeated: (a+)+, ([ab]*)*, (\w+|x)*. Its time is exponential.
_ATOM = r"(?:\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[^\\()\[\]{}*+?|])"
_REPEAT = r"(?:[*+]|\{\d+,\})"
_EVIL = re.compile(
    rf"\((?:\?:|\?P<\w+>)?(?:[^()]*\|)?{_ATOM}{_REPEAT}\??(?:{_ATOM}[*?]\??)*(?:\|[^()]*)?\){_REPEAT}"
    rf"|\(({_ATOM}+)\|\1\){_REPEAT}"
)


def _regex_replace(
    value: Any,
    find: str,
    replace: str = "",
    ignorecase: bool = False,
    multiline: bool = False,
    count: int = 0,
    mandatory_count: int = 0,
) -> str:
    subject, new = str(value), str(replace)
    compiled = pattern(find, subject, ignorecase, multiline)
    if (len(subject) + 1) * len(new) > 100 * MAX_SUBJECT:
        raise SecurityError("a replacement makes the text too long")
    result, done = compiled.subn(new, subject, count=count)
    if mandatory_count and done != mandatory_count:
        raise ValueError(f"{find!r} should be found {mandatory_count} times, and is found {done} times")
    return result


def _regex_search(value: Any, find: str, *groups: str, ignorecase: bool = False, multiline: bool = False) -> Any:
    r"""The match as text, or ``""``; with groups such as ``\1`` or ``\g<name>``, their texts."""
    match = pattern(find, value, ignorecase, multiline).search(str(value))
    if match is None:
        return ""
    return [match[_group(name)] for name in groups] if groups else match.group()


def _group(name: str) -> int | str:
    found = re.fullmatch(r"\\(?:g<(\w+)>|(\d+))", str(name))
    if found is None:
        raise ValueError(rf"{name!r} names no group: write \\1 or \\g<name>")
    text: str = found[1] or found[2]
    return int(text) if text.isdecimal() else text


def _regex_findall(value: Any, find: str, multiline: bool = False, ignorecase: bool = False) -> list[Any]:
    found = pattern(find, value, ignorecase, multiline).findall(str(value))
    return [list(each) if isinstance(each, tuple) else each for each in found]


def _split(value: Any, by: str | None = None, maxsplit: int = -1) -> list[str]:
    return str(value).split(by, maxsplit)


def _path_join(value: Any) -> str:
    parts = [value] if isinstance(value, str) else list(value)
    return posixpath.join(*map(str, parts)) if parts else ""


def _commonpath(value: Iterable[Any]) -> str:
    return posixpath.commonpath([str(each) for each in value])


def _urlsplit(value: Any, query: str = "") -> Any:
    """The parts of a URL, or the one that is asked for."""
    parts = urlsplit(str(value))
    names = ("scheme", "netloc", "path", "query", "fragment", "username", "password", "hostname", "port")
    found: Mapping[str, Any] = {name: getattr(parts, name) for name in names}
    if not query:
        return dict(found)
    if query not in found:
        raise ValueError(f"urlsplit knows no {query!r}: {', '.join(names)}")
    return found[query]


TEXT_FILTERS: dict[str, Callable[..., Any]] = {
    "basename": lambda value: posixpath.basename(str(value)),
    "commonpath": _commonpath,
    "dirname": lambda value: posixpath.dirname(str(value)),
    "normpath": lambda value: posixpath.normpath(str(value)),
    "path_join": _path_join,
    "quote": lambda value: shlex.quote("" if value is None else str(value)),
    "regex_escape": lambda value: re.escape(str(value)),
    "regex_findall": _regex_findall,
    "regex_replace": _regex_replace,
    "regex_search": _regex_search,
    "relpath": lambda value, start: posixpath.relpath(posixpath.join("/", str(value)), posixpath.join("/", str(start))),
    "split": _split,
    "splitext": lambda value: list(posixpath.splitext(str(value))),
    "urldecode": lambda value: unquote_plus(str(value)),
    "urlsplit": _urlsplit,
    "win_basename": lambda value: ntpath.basename(str(value)),
    "win_dirname": lambda value: ntpath.dirname(str(value)),
    "win_splitdrive": lambda value: list(ntpath.splitdrive(str(value))),
}
