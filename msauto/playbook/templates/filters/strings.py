"""Filters of texts: regular expressions, and parts of paths."""

from __future__ import annotations

import posixpath
import re
from typing import Any

from jinja2.exceptions import SecurityError

from msauto.playbook.templates.registry import template_filter

MAX_PATTERN = 1_000
MAX_SUBJECT = 100_000


def pattern(text: Any, subject: Any, ignorecase: bool = False, multiline: bool = False) -> re.Pattern[str]:
    """Compile a regular expression, unless it or its subject is too long, or it could take exponential time."""
    if len(str(text)) > MAX_PATTERN or len(str(subject)) > MAX_SUBJECT:
        raise SecurityError("a regular expression or its text is too long")
    try:
        flags = (re.IGNORECASE if ignorecase else 0) | (re.MULTILINE if multiline else 0)
        compiled = re.compile(str(text), flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"invalid regular expression {str(text)[:60]!r}: {error}") from error
    if _EXPONENTIAL.search(str(text)) and len(str(subject)) > 16:
        raise SecurityError(f"the regular expression {str(text)[:60]!r} repeats a repetition: it may never end")
    return compiled


# A group that is nothing but a repetition, repeated: (a+)+, ([ab]*)*, (\w+|x)*. Its time is exponential.
_ATOM = r"(?:\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[^\\()\[\]{}*+?|])"
_REPEAT = r"(?:[*+]|\{\d+,\})"
_EXPONENTIAL = re.compile(
    rf"\((?:\?:|\?P<\w+>)?(?:[^()]*\|)?{_ATOM}{_REPEAT}\??(?:{_ATOM}[*?]\??)*(?:\|[^()]*)?\){_REPEAT}"
    rf"|\(({_ATOM}+)\|\1\){_REPEAT}"
)


@template_filter
def regex_replace(
    value: Any,
    find: str,
    replace: str = "",
    ignorecase: bool = False,
    multiline: bool = False,
    count: int = 0,
    mandatory_count: int = 0,
) -> str:
    r"""A text with each match of a regular expression replaced.

    Example: 'EP 12' | regex_replace('EP (.*)', '\\1/30')
    """
    subject, new = str(value), str(replace)
    compiled = pattern(find, subject, ignorecase, multiline)
    if (len(subject) + 1) * len(new) > 100 * MAX_SUBJECT:
        raise SecurityError("a replacement makes the text too long")
    result, done = compiled.subn(new, subject, count=count)
    if mandatory_count and done != mandatory_count:
        raise ValueError(f"{find!r} must match {mandatory_count} times, and matches {done} times")
    return result


@template_filter
def regex_search(value: Any, find: str, *groups: str, ignorecase: bool = False, multiline: bool = False) -> Any:
    r"""The first match of a regular expression, or an empty text.

    With groups such as ``\1`` or ``\g<name>``, their texts.

    Example: 'EP 12' | regex_search('[0-9]+')
    """
    match = pattern(find, value, ignorecase, multiline).search(str(value))
    if match is None:
        return ""
    return [match[_group(name)] for name in groups] if groups else match.group()


def _group(name: str) -> int | str:
    found = re.fullmatch(r"\\(?:g<(\w+)>|(\d+))", str(name))
    if found is None:
        raise ValueError(rf"{name!r} is not a group: write \\1 or \\g<name>")
    text: str = found[1] or found[2]
    return int(text) if text.isdecimal() else text


@template_filter
def regex_findall(value: Any, find: str, multiline: bool = False, ignorecase: bool = False) -> list[Any]:
    """All matches of a regular expression.

    Example: 'EP 12 of 30' | regex_findall('[0-9]+')
    """
    found = pattern(find, value, ignorecase, multiline).findall(str(value))
    return [list(each) if isinstance(each, tuple) else each for each in found]


@template_filter
def split(value: Any, by: str | None = None, maxsplit: int = -1) -> list[str]:
    """The parts of a text.

    Example: 'a,b' | split(',')
    """
    return str(value).split(by, maxsplit)


# Paths ----------------------------------------------------------------------------------------------------------


@template_filter
def basename(value: Any) -> str:
    """The last part of a path.

    Example: '/media/news/a.mxf' | basename
    """
    return posixpath.basename(str(value))


@template_filter
def dirname(value: Any) -> str:
    """A path without its last part.

    Example: '/media/news/a.mxf' | dirname
    """
    return posixpath.dirname(str(value))


@template_filter
def splitext(value: Any) -> list[str]:
    """A file name and its extension.

    Example: 'a.mxf' | splitext
    """
    return list(posixpath.splitext(str(value)))
