"""Ansible's everyday filters and tests, and those for time codes. All are deterministic, and limit what they make.

Of Jinja's own, templates have those that media playbooks use: :data:`JINJA_FILTERS`, :data:`JINJA_TESTS`. Ours register
themselves; their docstrings are their documentation. The first line is the description, without an article or a verb.
The last line is ``Example: ...``, an expression that the reference evaluates.
"""

from __future__ import annotations

import base64
import itertools
import json
import math
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

from jinja2 import pass_context, pass_environment
from jinja2.environment import Environment
from jinja2.filters import make_attrgetter
from jinja2.runtime import Context, Undefined

from msauto.codec import json_text, parse_json
from msauto.documents.document import shallow
from msauto.documents.loader import plain
from msauto.documents.writer import verbatim, yaml_lines
from msauto.errors import nearest
from msauto.model.timecode import Timecode, parse_rate, show_timecode
from msauto.playbook.templates.budget import MAX_SECONDS, check_length, spend
from msauto.playbook.templates.names import SecretTracker, TemplateFunctionError
from msauto.primitives.decimals import is_bounded, read_based, read_decimal, read_whole, show_cut
from msauto.primitives.iso_times import parse_datetime, parse_formatted

if TYPE_CHECKING:
    from regex import Match

Function = TypeVar("Function", bound=Callable[..., Any])
Functions = dict[str, Callable[..., Any]]

FILTERS: Functions = {}
TESTS: Functions = {}
LOOKUPS: Functions = {}


def _registrar(functions: Functions) -> Callable[[Function], Function]:
    def register(function: Function) -> Function:
        functions[function.__name__.removeprefix("lookup_").strip("_")] = function
        return function

    return register


template_filter = _registrar(FILTERS)
"""Registers a filter by the name of its function; ``_`` at the end avoids names of Python."""
template_test = _registrar(TESTS)
template_lookup = _registrar(LOOKUPS)
"""Registers a lookup; its function is called ``lookup_NAME``, and its keyword arguments are the options."""

words = str.split
JINJA_FILTERS = words(
    """abs capitalize count d default dictsort first format groupby join last length list lower map max min reject
    rejectattr replace reverse round select selectattr sort string sum title trim truncate upper"""
)
JINJA_TESTS = words(
    """defined divisibleby eq equalto even false ge gt in le lt mapping ne none number odd sequence string true
    undefined == != < <= > >="""
)
REMOVED: dict[str, str] = {
    **dict.fromkeys(
        ("e", "escape", "forceescape", "safe", "striptags", "urlize", "xmlattr"),
        "nothing here is HTML",
    ),
    **dict.fromkeys(("random", "shuffle"), "the same playbook must always give the same plan"),
    **dict.fromkeys(("pprint", "to_nice_json"), "use to_json"),
    **dict.fromkeys(("date", "format_date", "timestamp"), "use strftime"),
    "attr": "write a.b or a[b]",
    "b64decode": "write the text itself",
    "from_yaml": "read it with lookup('yaml', FILE)",
    "json_query": "use map, selectattr, and a.b or a[0]",
    "path_join": "write parts | join('/')",
    "dirname": "write value.rpartition('/')[0]",
    "intersect": "use select('in', other)",
    "mandatory": "an undefined name is an error without it",
    "regex": "use search or match",
    "subset": "write value | difference(other) == []",
    "superset": "write other | difference(value) == []",
    "union": "write (a + b) | unique",
    "urlencode": "msauto encodes what it sends",
}
"""Filters and tests that users may look for and that are removed on purpose, with the reason or the alternative."""

# Texts ----------------------------------------------------------------------------------------------------------

MAX_PATTERN = 1_000
MAX_SUBJECT = 100_000


_UNLIKE_PYTHON = re.compile(
    r"\(\?(?:R|[+-]?\d|&|P>)|\(\*[A-Z]|(?<!\\)\{[\d<=,\s]*[deis](?![a-z])[^}]*\}"
)
"""What the library has beyond Python's syntax and takes much memory: recursion, and matches that only resemble."""


def matches(
    value: Any, find: str, ignorecase: bool = False, multiline: bool = False
) -> Iterator[Match[str]]:
    """Yield the matches of a regular expression; raises if it or its text is too long, or it takes too long."""
    import regex  # only if a template has one: it takes 30 ms

    text = str(value)
    expression = str(find)
    check_length(len(expression), "a regular expression", MAX_PATTERN)
    check_length(len(text), "the text of a regular expression", MAX_SUBJECT)
    if unlike := _UNLIKE_PYTHON.search(expression):
        raise ValueError(f"{unlike[0]!r} is not allowed in a regular expression")
    flags = regex.IGNORECASE if ignorecase else 0
    if multiline:
        flags |= regex.MULTILINE
    try:
        for found in regex.compile(expression, flags).finditer(text, timeout=MAX_SECONDS):
            spend(sum(map(len, found.groups(""))))
            yield found
    except (regex.error, OverflowError, RecursionError) as error:
        raise ValueError(f"invalid regular expression {expression[:60]!r}: {error}") from error
    except TimeoutError as error:
        why = f"the regular expression {expression[:60]!r} takes more than {MAX_SECONDS:g} seconds"
        raise TemplateFunctionError(
            why, "do not repeat what is repeated already, as in (a+)+"
        ) from error


@template_filter
def regex_replace(
    value: Any,
    find: str,
    replace: str = "",
    ignorecase: bool = False,
    multiline: bool = False,
    count: int = 0,
) -> str:
    r"""A text with each match of a regular expression replaced.

    Example: 'EP 12' | regex_replace('EP (.*)', '\\1/30')
    """
    text = str(value)
    new = str(replace)
    most_groups = new.count("\\")
    made = ""
    end = 0
    for found in itertools.islice(matches(text, find, ignorecase, multiline), count or None):
        longest = max(found[0], *found.groups(""), key=len)
        spend(most_groups * len(longest))
        made += text[end : found.start()]
        made += found.expand(new)
        end = found.end()
    return made + text[end:]


@template_filter
def regex_search(
    value: Any, find: str, *groups: str, ignorecase: bool = False, multiline: bool = False
) -> Any:
    r"""The first match of a regular expression, or an empty text.

    With groups such as ``\1`` or ``\g<name>``, their texts.

    Example: 'EP 12' | regex_search('[0-9]+')
    """
    found = next(matches(value, find, ignorecase, multiline), None)
    if found is None:
        return ""
    texts = []
    for name in groups:
        parsed = re.fullmatch(r"\\(?:g<(\w+)>|(\d{1,3}))", str(name))
        if parsed is None:
            raise ValueError(rf"{name!r} is not a group: write \\1 or \\g<name>")
        texts.append(found[parsed[1] or int(parsed[2])])
    return texts or found[0]


@template_filter
def regex_findall(
    value: Any, find: str, multiline: bool = False, ignorecase: bool = False
) -> list[Any]:
    """All matches of a regular expression.

    Example: 'EP 12 of 30' | regex_findall('[0-9]+')
    """
    found: list[Any] = []
    for match in matches(value, find, ignorecase, multiline):
        texts = match.groups("") or (match[0],)
        found.append(texts[0] if len(texts) == 1 else list(texts))
    return found


@template_filter
def split(value: Any, by: str | None = None, maxsplit: int = -1) -> list[str]:
    """The parts of a text.

    Example: 'a,b' | split(',')
    """
    return str(value).split(by, maxsplit)


@template_filter
def basename(value: Any) -> str:
    """The last part of a path.

    Example: '/media/news/a.mxf' | basename
    """
    return posixpath.basename(str(value))


@template_filter
def splitext(value: Any) -> list[str]:
    """A file name and its extension.

    Example: 'a.mxf' | splitext
    """
    return list(posixpath.splitext(str(value)))


def items_of(value: Any, name: str) -> list[Any]:
    """Return a list; raises ``TypeError`` for anything else (a text would be a list of its letters)."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise TypeError(f"{name} needs a list, not {type(value).__name__}")
    return list(value)


def _as_key(value: Any) -> Any:
    """Return a value as a key of a mapping: for a list or mapping, its JSON."""
    if isinstance(value, list | tuple | Mapping):
        return (to_json(value, sort_keys=True),)
    return value


@template_filter
@pass_environment
def unique(
    environment: Environment, value: Any, case_sensitive: bool = True, attribute: Any = None
) -> list[Any]:
    """Each item once; case-sensitive.

    Example: ['a', 'A', 'a'] | unique
    """
    getter = make_attrgetter(environment, attribute)
    first_by_key: dict[Any, Any] = {}
    for item in items_of(value, "unique"):
        key = _as_key(getter(item))
        if isinstance(key, str) and not case_sensitive:
            key = key.lower()
        first_by_key.setdefault(key, item)
    return list(first_by_key.values())


@template_filter
def difference(first: Any, second: Any) -> list[Any]:
    """The items of the first list that are not in the second.

    Example: [1, 2, 3] | difference([2])
    """
    left_out = set(map(_as_key, items_of(second, "difference")))
    first_by_key: dict[Any, Any] = {}
    for item in items_of(first, "difference"):
        key = _as_key(item)
        if key not in left_out:
            first_by_key.setdefault(key, item)
    return list(first_by_key.values())


@template_filter
def flatten(value: Any, levels: int | None = None, skip_nulls: bool = True) -> list[Any]:
    """Nested lists as one list; levels=1 flattens one level.

    Example: [1, [2, [3]]] | flatten(levels=1)
    """
    flat: list[Any] = []
    for item in items_of(value, "flatten"):
        if isinstance(item, list | tuple) and (levels is None or levels > 0):
            deeper = None if levels is None else levels - 1
            flat.extend(flatten(item, deeper, skip_nulls))
        elif not (skip_nulls and item in (None, "None", "null")):
            flat.append(item)
    return flat


@template_filter
def zip_(*lists: Any, strict: bool = False) -> list[list[Any]]:
    """Lists side by side, as long as the shortest; with strict=true, lists of different lengths are an error.

    Example: words | zip([1, 2])
    """
    given = [items_of(value, "zip") for value in lists]
    return list(map(list, zip(*given, strict=strict)))


@template_filter
def product(*lists: Any) -> list[list[Any]]:
    """Each item of a list with each of the others.

    Example: words | product([1, 2])
    """
    given = [items_of(value, "product") for value in lists]
    check_length(len(given) * math.prod(map(len, given)), "the result of product")
    return list(map(list, itertools.product(*given)))


@template_filter
def subelements(value: Any, keys: Any, skip_missing: bool = False) -> list[list[Any]]:
    """Each item with each item of a list inside it: for a key, keys with dots, or a list of keys.

    The values of a mapping are its items. skip_missing=true leaves out items without the key.

    Example: [{'title': 'EP1', 'cues': [10, 20]}] | subelements('cues')
    """
    if isinstance(value, Mapping):
        value = list(value.values())
    pairs: list[list[Any]] = []
    for item in items_of(value, "subelements"):
        way = keys.split(".") if isinstance(keys, str) else items_of(keys, "subelements")
        inner = item
        for key in way:
            if isinstance(inner, Mapping) and key in inner:
                inner = inner[key]
            elif isinstance(inner, Mapping) and skip_missing:
                inner = []
                break
            else:
                known = nearest(str(key), map(str, inner)) if isinstance(inner, Mapping) else ""
                raise TemplateFunctionError(
                    f"subelements: an item has no {key!r}", known or "use a list of mappings"
                )
        pairs += ([item, element] for element in items_of(inner, f"subelements ({keys})"))
    return pairs


@template_filter
def combine(
    first: Any, *others: Any, recursive: bool = False, list_merge: str = "replace"
) -> dict[str, Any]:
    """Merged mappings, the later over the earlier; recursive=true merges inner ones; list_merge='append' joins lists.

    Example: {'a': {'x': 1}} | combine({'a': {'y': 2}}, recursive=true)
    """
    if list_merge not in {"replace", "append"}:
        raise ValueError(f"unknown list_merge {list_merge!r}: replace, append")
    result: dict[str, Any] = {}
    for mapping in flatten([first, *others]):
        if not isinstance(mapping, Mapping):
            raise TypeError(f"combine needs mappings, not {type(mapping).__name__}")
        for key, value in mapping.items():
            old = result.get(key)
            if recursive and isinstance(value, Mapping) and isinstance(old, Mapping):
                result[key] = combine(old, value, recursive=True, list_merge=list_merge)
            elif list_merge == "append" and isinstance(value, list) and isinstance(old, list):
                result[key] = [*old, *value]
            else:
                result[key] = value
    return result


@template_filter
def dict2items(
    value: Any, key_name: str = "key", value_name: str = "value"
) -> list[dict[str, Any]]:
    """A mapping as a list of key and value.

    Example: {'a': 1} | dict2items
    """
    if not isinstance(value, Mapping):
        raise TypeError("dict2items needs a mapping")
    return [{key_name: key, value_name: item} for key, item in value.items()]


@template_filter
def items2dict(value: Any, key_name: str = "key", value_name: str = "value") -> dict[str, Any]:
    """A list of key and value as a mapping.

    Example: [{'key': 'a', 'value': 1}] | items2dict
    """
    mapping: dict[str, Any] = {}
    for item in items_of(value, "items2dict"):
        if not isinstance(item, Mapping) or not {key_name, value_name} <= item.keys():
            raise TypeError(f"items2dict needs mappings with {key_name!r} and {value_name!r}")
        mapping[str(item[key_name])] = item[value_name]
    return mapping


@template_filter
def ternary(value: Any, yes: Any, no: Any, none: Any = None) -> Any:
    """One value or another, by a condition.

    Example: (1 > 2) | ternary('yes', 'no')
    """
    if value is None and none is not None:
        return none
    return yes if value else no


_WORDS = {
    **dict.fromkeys(("true", "yes", "on", "1", "y", "t"), True),
    **dict.fromkeys(("false", "no", "off", "0", "n", "f", ""), False),
}


@template_filter
def bool_(value: Any) -> bool:
    """True or false from yes, no, on, off, 1, 0; anything else is an error.

    Example: 'yes' | bool
    """
    if not isinstance(value, str):
        return bool(value)
    if value.strip().lower() not in _WORDS:
        raise ValueError(f"{value[:40]!r} is neither true nor false")
    return _WORDS[value.strip().lower()]


@template_filter
def int_(value: Any, default: Any = None, base: int = 10) -> Any:
    """A whole number; a value that is not a number is an error unless a default is given.

    Example: '012' | int
    """
    try:
        if not isinstance(value, str):
            return int(_bounded(value))
        number = read_decimal(value) if base == 10 else read_based(value, base)
        if number is None:
            raise ValueError(_not_a_number(value))
        return int(number)
    except (ValueError, TypeError, OverflowError):
        if default is None:
            raise
        return default


@template_filter
def float_(value: Any, default: Any = None) -> Any:
    """A number with a decimal point; a value that is not a number is an error unless a default is given.

    Example: '1.5' | float
    """
    try:
        if not isinstance(value, str):
            return float(_bounded(value))
        number = read_decimal(value)
        if number is None:
            raise ValueError(_not_a_number(value))
        return float(number)
    except (ValueError, TypeError, OverflowError):
        if default is None:
            raise
        return default


def _bounded(number: Any) -> Any:
    """Return a number as it is; raises ``ValueError`` for one out of range."""
    if not is_bounded(number):
        raise ValueError("the number is out of range")
    return number


def _not_a_number(text: str) -> str:
    return f"{show_cut(text)} is not a number of at most 9 digits before its point and 12 behind it"


@template_filter
def to_json(value: Any, indent: int | None = None, sort_keys: bool = False) -> str:
    """A value as JSON.

    Example: {'a': [1]} | to_json
    """
    check_length(indent or 0, "the indentation of to_json", 16)
    return json.dumps(
        plain(value), ensure_ascii=False, indent=indent, sort_keys=sort_keys, default=json_text
    )


@template_filter
def to_yaml(value: Any) -> str:
    """A value as YAML.

    Example: words | to_yaml
    """
    return "".join(f"{line}\n" for line in yaml_lines(verbatim(json.loads(to_json(value)))))


@template_filter
def from_json(value: Any) -> Any:
    """The value of a JSON text.

    Example: '{"a": [1]}' | from_json
    """
    try:
        return shallow(parse_json(str(value)))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"invalid JSON: {error}") from error


@template_filter
def b64encode(value: Any, encoding: str = "utf-8") -> str:
    """A text as Base64.

    Example: 'News' | b64encode
    """
    if encoding != "utf-8":  # some take quadratic time
        check_length(len(str(value)), "a text in another encoding", MAX_PATTERN)
    return base64.b64encode(str(value).encode(encoding)).decode()


# Positions: exact, no float touches one --------------------------------------------------------------------------


def _rate(context: Context, fps: Any) -> Fraction:
    """Return the given rate, or that of the asset: 25, ``29.97``, ``30000/1001``."""
    if fps is None:
        fps = context.environment.getattr(context.resolve("asset"), "fps")
    return parse_rate(fps)  # raises for an undefined one, with the name


def _frames_of(value: Any, rate: Fraction) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise TypeError("a position is a whole number of frames or a time code")
    text = str(value).strip()
    if text.startswith("-"):
        return -Timecode.parse(text[1:]).to_frames(rate)
    return Timecode.parse(text if isinstance(value, str) else value).to_frames(rate)


@template_filter
@pass_context
def frames(context: Context, value: Any, fps: Any = None) -> int:
    """A position in frames; the rate is the asset's unless given.

    Example: '00:00:10:05' | frames(25)
    """
    return _frames_of(value, _rate(context, fps))


@template_filter
@pass_context
def timecode(context: Context, value: Any, fps: Any = None, drop: bool = False) -> str:
    """Frames as a time code; the rate is the asset's unless given; drop=true for drop frame.

    Example: 1800 | timecode('30000/1001', drop=true)
    """
    rate = _rate(context, fps)
    return show_timecode(_frames_of(value, rate), rate, drop=drop)


@template_filter
@pass_context
def seconds(context: Context, value: Any, fps: Any = None) -> int | float:
    """A position in seconds; the rate is the asset's unless given.

    Example: '00:00:10:05' | seconds(25)
    """
    rate = _rate(context, fps)
    exact = _frames_of(value, rate) / rate
    return exact.numerator if exact.denominator == 1 else float(exact)


@template_filter
@pass_context
def shift(context: Context, value: Any, by: Any, fps: Any = None) -> Any:
    """A position moved by frames or a time code, in its own notation.

    Example: '00:01:00:00' | shift(-25, 25)
    """
    if isinstance(value, int) and isinstance(by, int):
        return _not_before_start(value + by)
    rate = _rate(context, fps)
    moved = _frames_of(value, rate)
    moved += by if isinstance(by, int) else _frames_of(by, rate)
    _not_before_start(moved)
    if isinstance(value, int) or read_whole(str(value)) is not None:
        return moved
    return show_timecode(moved, rate, drop=";" in str(value))


def _not_before_start(frame: int) -> int:
    if frame < 0:
        raise ValueError("the position would be before the start")
    return frame


# Dates and times: now is that of the run, so that every template of a plan sees the same one -----------------------

_DIRECTIVE = "%(?:[-_0^#]?[aAbBcdDeFgGhHIjklmMnNpPrRsStTuUVwWxXyYzZfC]|%)"


def check_time_format(form: str) -> None:
    """Raise for a format of times that is invalid, or that sets a width."""
    if len(form) > 200 or re.sub(_DIRECTIVE, "", form).count("%"):
        raise ValueError(
            f"{form[:40]!r} is not a valid time format: write it as '%Y-%m-%d %H:%M:%S'"
        )


@template_filter
@pass_context
def strftime(context: Context, value: Any, form: Any = None, utc: bool = False) -> str:
    """A time in a format such as '%d.%m.%Y'; as in Ansible, also a format with seconds since 1970.

    Without a time, that of the run. Seconds are in UTC, wherever msauto runs.

    Example: '%Y-%m-%d' | strftime(86400)
    """
    if isinstance(value, str):
        moment = context.resolve("now") if form is None else form
        value, form = moment, value
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = datetime.fromtimestamp(value, UTC)
    if not isinstance(value, date) or not isinstance(form, str):
        raise TypeError("strftime needs a time and a format such as '%Y-%m-%d'")
    check_time_format(form)
    if value.year < 1000:
        raise ValueError(
            f"the year {value.year} has fewer than four digits: systems write it in different ways"
        )
    if utc and isinstance(value, datetime) and value.tzinfo:
        value = value.astimezone(UTC)
    return str(value.strftime(form))


@template_filter
def to_datetime(value: Any, form: str = "%Y-%m-%d %H:%M:%S") -> datetime:
    """A text as a time; ISO 8601, or a format.

    Example: ('2026-11-20 10:00:00' | to_datetime) - ('2026-11-20 09:00:00' | to_datetime)
    """
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)  # noqa: DTZ001 - a date has no zone
    check_time_format(form)
    try:
        return parse_formatted(str(value), form)
    except ValueError as error:
        try:
            return parse_datetime(str(value))
        except ValueError:
            raise ValueError(
                f"{str(value)[:40]!r} is not a time in the format {form[:40]!r}: {error}"
            ) from error


# Secrets --------------------------------------------------------------------------------------------------------


def tracker_of(context: Context) -> SecretTracker:
    """Return what knows the secrets of the run."""
    tracker: SecretTracker = context.scope.tracker  # type: ignore[attr-defined] # a ScopeContext
    return tracker


@template_filter
@pass_context
def secret(context: Context, value: Any) -> str:
    """A text that is marked as secret: it is sent, and never shown (docs/how-to/secrets.md).

    Example: 'a-token' | secret
    """
    if isinstance(value, Undefined):
        str(value)  # raises: the name is undefined
    marked = tracker_of(context).add(value)
    tracker_of(context).touched = True
    return marked


# Tests ----------------------------------------------------------------------------------------------------------


@template_test
def match(value: Any, find: str, ignorecase: bool = False, multiline: bool = False) -> bool:
    """A regular expression matches at the beginning.

    Example: 'EP 12' is match('EP')
    """
    found = next(matches(value, find, ignorecase, multiline), None)
    return found is not None and found.start() == 0


@template_test
def search(value: Any, find: str, ignorecase: bool = False, multiline: bool = False) -> bool:
    """A regular expression matches anywhere.

    Example: 'EP 12' is search('12$')
    """
    return next(matches(value, find, ignorecase, multiline), None) is not None


_ORDER = {
    "==": (0,),
    "eq": (0,),
    "=": (0,),
    "!=": (-1, 1),
    "<>": (-1, 1),
    "ne": (-1, 1),
    "<": (-1,),
    "lt": (-1,),
}
_ORDER |= {"<=": (-1, 0), "le": (-1, 0), ">": (1,), "gt": (1,), ">=": (0, 1), "ge": (0, 1)}


@template_test
def version(value: Any, other: Any, operator: str = "==") -> bool:
    """Compares versions: ==, !=, <, <=, >, >=.

    Example: '2.9.87' is version('2.10', '<')
    """
    if operator not in _ORDER:
        raise ValueError(f"unknown operator {operator!r}; {nearest(operator, _ORDER)}")
    left = _version_key(value)
    right = _version_key(other)
    return (left > right) - (left < right) in _ORDER[operator]


def _version_key(value: Any) -> tuple[int, ...]:
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})*", str(value)):
        raise ValueError(f"{str(value)[:40]!r} is not a valid version")
    parts = [int(part) for part in str(value).split(".")]
    while parts and not parts[-1]:
        parts.pop()  # 2.0 is 2
    return tuple(parts)


@template_test
def contains(value: Any, item: Any) -> bool:
    """A list, text or mapping contains it.

    The opposite of ``in``, for ``selectattr('tags', 'contains', 'news')``.

    Example: words is contains('news')
    """
    if isinstance(value, str | list | tuple | Mapping):
        return item in value
    raise TypeError(f"contains needs a list, a text or a mapping, not {type(value).__name__}")
