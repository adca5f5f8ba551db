"""The types of values in playbooks, inventories and settings, as pydantic types with messages of our own.

A value may be a template: ``UnrenderedTemplate`` passes wherever :data:`Value` or :data:`Opt` allows it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Annotated, Any, Final, TypeAlias, TypeVar
from zoneinfo import ZoneInfo

from pydantic import Discriminator, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, Tag
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from msauto.documents.document import MarkedTemplate, UnrenderedTemplate, is_template
from msauto.documents.scalars import WrittenFloat, WrittenInt
from msauto.errors import ProblemKind
from msauto.model.fields import unreportable
from msauto.model.live import Folder, parse_folder
from msauto.model.timecode import Timecode, TimecodeError
from msauto.primitives.decimals import MOST, MOST_LONG
from msauto.primitives.iso_times import parse_date, parse_datetime
from msauto.secrets.sources import MarkedText, leaves

T = TypeVar("T")


def is_marked(value: Any) -> bool:
    """Return whether a text is declared secret, with the tag or the filter."""
    by_filter = (
        isinstance(value, UnrenderedTemplate) and re.search(r"\|\s*secret\b", value) is not None
    )
    return isinstance(value, MarkedText | MarkedTemplate) or by_filter


def has_pending(data: Any) -> bool:
    """Return whether the data holds an unrendered template."""
    return bool(leaves(data, UnrenderedTemplate))


def invalid(
    message: str, remedy: str = "", *, key: str = "", kind: ProblemKind = "invalid-value"
) -> PydanticCustomError:
    """Return a validation error; ``key`` names the key of the mapping that it is about."""
    text = message.replace("{", "{{").replace("}", "}}")
    return PydanticCustomError(
        "invalid", text, {"invalid": message, "remedy": remedy, "key": key, "kind": kind}
    )


TEMPLATE_SCHEMA: dict[str, Any] = {
    "type": "string",
    "pattern": r"\{[{%]",
    "description": "a template",
}


class _Templated:
    """Accepts a template in place of a value. An explicit null is refused: absent is not empty."""

    def __init__(self, *, template: bool = True) -> None:
        self._template = template

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_wrap_validator_function(self._validate, handler(source))

    def _validate(self, value: Any, handler: core_schema.ValidatorFunctionWrapHandler) -> Any:
        if value is None:
            raise invalid(
                "has no value",
                'remove the key; a text or a list is cleared by "" or []',
                kind="wrong-type",
            )
        if self._template and isinstance(value, UnrenderedTemplate):
            return value
        return handler(value)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        inner = dict(handler(schema))
        choices = [choice for choice in inner.pop("anyOf", []) if choice != {"type": "null"}]
        if len(choices) == 1:
            inner = {**inner, **choices[0]}
        elif choices:
            inner["anyOf"] = choices
        is_any_text = inner.get("type") == "string" and set(inner) <= {"type", "description", KIND}
        if is_any_text or not self._template or not inner:
            return inner
        return {"anyOf": [inner, TEMPLATE_SCHEMA]}


TEMPLATED = _Templated()
Value: TypeAlias = Annotated[T, TEMPLATED]
"""A value, or a template."""
Opt: TypeAlias = Annotated[T | None, TEMPLATED]
"""A value or a template; the key may be left out."""
Plain: TypeAlias = Annotated[T | None, _Templated(template=False)]
"""A value that cannot be a template; the key may be left out."""


KIND = "kind"
"""The key of the words for a kind of value, which are only for the reference, in a JSON Schema."""


class Read:
    """Reads a plain value with a function; ``schema`` is the JSON Schema of the values that it takes.

    ``words`` name the kind of value in the reference, unless it follows from the schema.
    """

    def __init__(self, read: Callable[[Any], Any], words: str = "", **schema: Any) -> None:
        self.read = read
        if words:
            schema[KIND] = words
        self._schema = schema

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return dict(self._schema)


def matching(
    pattern: str,
    message: str,
    remedy: str = "",
    convert: Callable[[str], Any] = str,
    *,
    to_text: Callable[[Any], str] | None = None,
    words: str = "",
) -> Read:
    """Read a text that has a pattern, which is that of its JSON Schema too; ``message`` may hold ``{}`` for the value.

    ``to_text`` makes a text of a value beforehand; without it, only texts are read. ``convert`` makes the value of it.
    """

    def read_text(value: Any) -> Any:
        as_text = value if to_text is None else to_text(value)
        if not isinstance(as_text, str) or not re.fullmatch(pattern, as_text, re.DOTALL):
            raise invalid(message.format(shown_value(as_text)), remedy)
        return convert(as_text)

    return Read(read_text, words, type="string", pattern=pattern)


Then: TypeAlias = Annotated[T, Tag("then")]
Else: TypeAlias = Annotated[T, Tag("else")]


def _if(*kinds: type) -> Discriminator:
    """Return what chooses ``Then[A]`` for values of these kinds, ``Else[B]`` for others."""
    return Discriminator(lambda value: "then" if isinstance(value, kinds) else "else")


IF_LIST, IF_MAP, IF_NUMBER = _if(list), _if(dict), _if(int, float)

LONGEST_TIMEOUT = 604_800  # seconds: a week

_KINDS: tuple[tuple[tuple[type, ...], str], ...] = (
    ((type(None),), "nothing"),
    ((bool,), "true or false"),
    ((int, float), "a number"),
    ((str,), "text"),
    ((list,), "a list"),
    ((dict,), "a mapping"),
)


def kind_of(value: Any) -> str:
    """Return the kind of a value, as messages name it."""
    return next(
        (word for kinds, word in _KINDS if isinstance(value, kinds)), "an unsupported object"
    )


def _text(value: Any) -> str:
    return reportable(_label(value))


def _label(value: Any) -> str:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool):
        raise invalid(
            "must be text, not true or false",
            f'quote it: "{str(value).lower()}"',
            kind="wrong-type",
        )
    if isinstance(value, WrittenInt | WrittenFloat):
        raise invalid(
            f"must be text, not the number {value.text}",
            f'quote it: "{value.text}"',
            kind="wrong-type",
        )
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        raise invalid(
            "must be text, not a number with a decimal point",
            'convert it: "{{ (…) | round(2) | string }}"',
            kind="wrong-type",
        )
    if isinstance(value, datetime | date):
        return value.isoformat()
    raise invalid(f"must be text, not {kind_of(value)}", "write a text", kind="wrong-type")


def reportable(text: str) -> str:
    """Return a text that a server can report; raises for any other."""
    why = unreportable(text)
    if why is not None:
        raise invalid(why, "remove the character")
    return text


def strict_text(value: Any) -> str:
    """Return a text; a number is refused, because its notation counts."""
    if isinstance(value, WrittenInt | WrittenFloat | int) and not isinstance(value, bool):
        written = getattr(value, "text", str(value))
        raise invalid(
            f"must be text, not the number {written}", f'quote it: "{written}"', kind="wrong-type"
        )
    return _text(value)


def _name(value: Any) -> str:
    text = _text(value)
    if not text.strip():
        raise invalid("must not be empty", "add a text, or remove the key")
    return text


def _one_name(value: Any) -> str:
    if isinstance(value, list):
        remedy = 'loop over them: "{{ item }}" here, and loop: [one, two] beside the module'
        raise invalid("must be one text, not a list", remedy, kind="wrong-type")
    return _name(value)


def between(low: float, high: float, words: str = "") -> Any:
    """Return the bounds of a number, both included."""
    extra: Any = {KIND: words} if words else None
    return Field(ge=low, le=high, json_schema_extra=extra)


def shown_value(value: Any) -> str:
    """Return a value as messages show it: short, and without a number of too many digits."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and value.bit_length() > 1024:
        return "a number with too many digits"  # Python converts at most 4,300 digits
    if isinstance(value, int | float):
        return str(getattr(value, "text", value))[:60]
    if isinstance(value, str):
        return repr(value[:60])
    return kind_of(value)


_QUOTED_TEMPLATE = re.compile(r"""(['"])\{\{([^{}]*)\}\}\1""")


def _without_braces(expression: str) -> str:
    """Return the remedy for braces in an expression; those in quotes are a text without them."""
    bare = _QUOTED_TEMPLATE.sub(lambda match: match[2].strip(), expression)
    if re.search(r"""['"][^'"{]*\{\{|\{%""", bare):
        return "remove the braces {{ }}, and join texts with ~, as in 'EP' ~ number"
    bare = re.sub(r"\{\{\s*(.*?)\s*\}\}", r"\1", bare)
    return f"remove the braces {{{{ }}}}: {bare[:100]}"


def _expression(value: Any) -> str:
    if isinstance(value, bool):
        if value:
            return "true"
        return "false"
    if isinstance(value, str) and is_template(value):
        raise invalid("is already an expression", _without_braces(value))
    if isinstance(value, str) and value.strip():
        return str(value)
    what = "empty" if value == "" else kind_of(value)
    raise invalid(f"must be an expression, not {what}", "write one such as asset.frames > 250")


def as_list(value: Any) -> Any:
    """Return a list as it is, anything else as a list of one."""
    if isinstance(value, list):
        return value
    return [value]


_EXPRESSION = {"type": ["string", "boolean"], "not": {"type": "string", "pattern": r"\{[{%]|^\s*$"}}

Text = Annotated[str, Read(_text, "text", type=["string", "integer"])]
"""Text; a whole number becomes its text, any other value that is not text is refused."""
Label = Annotated[str, Read(_label, "text", type=["string", "integer"])]
"""Text that is not sent to a server, such as the name of a task."""
Quoted = Annotated[str, Read(strict_text, "text, quoted", type="string")]
Name = Annotated[str, Read(_name, "text", type=["string", "integer"], pattern=r"\S")]
OneName = Annotated[str, Read(_one_name, "text", type=["string", "integer"], pattern=r"\S")]
"""The name of the target of a task: several targets need a loop."""
Rating = Annotated[int, between(-MOST, MOST, "a whole number")]
Count = Annotated[int, between(0, MOST, "a whole number, 0 or more")]
Identifier = Annotated[int, between(0, MOST_LONG, "a whole number, 0 or more")]
Seconds = Annotated[float, Field(gt=0, le=LONGEST_TIMEOUT)]
Number = Annotated[
    float, Field(ge=0, allow_inf_nan=False, json_schema_extra={KIND: "a number, 0 or more"})
]
FolderText = Annotated[
    Folder, Read(lambda value: parse_folder(_text(value)), "text", type=["string", "integer"])
]
Expressions = Annotated[
    tuple[str, ...],
    Read(
        lambda value: tuple(map(_expression, as_list(value))),
        "an expression, or a list of them",
        anyOf=[_EXPRESSION, {"type": "array", "items": _EXPRESSION}],
    ),
]
Texts = Annotated[Then[list[Value[Text]]] | Else[Text], IF_LIST]
"""A text, or a list of texts: :func:`as_list` makes a list of either."""
TextsOrLists = Annotated[Then[list[Value[Texts]]] | Else[Text], IF_LIST]
"""As :data:`Texts`; an item of the list may be a list of texts."""
NsName = Annotated[
    str,
    matching(
        r"^[^\s:=&?#]+:[^\s=&?#]+$",
        "{} is not a valid XMP field name",
        "write it as ns:name, for example dc:subject",
        reportable,
    ),
]
KeyId = Annotated[
    str,
    matching(
        r"^[^:\s][^:]*:.+",
        "{} is not a valid id",
        'write NS:ID, for example "handle:4711"',
        to_text=_name,
        words="NS:ID",
    ),
]


# Positions, durations and times ----------------------------------------------------------------------------------


def _position(value: Any) -> Timecode:
    if isinstance(value, bool) or not isinstance(value, int | str):
        shown = getattr(value, "text", shown_value(value))
        raise invalid(
            f"must be a time code or a number of frames, not {shown}",
            'quote time codes: "00:00:10:00"',
            kind="time-code",
        )
    try:
        position = value if isinstance(value, str) else int(value)
        return Timecode.parse(position)
    except (TimecodeError, ValueError) as error:
        remedy = (
            "write hours, minutes, seconds and frames, such as 00:00:10:00, or a number of frames"
        )
        if isinstance(value, str) and re.fullmatch(r"\s*\d\d:[0-5]\d:[0-5]\d\s*", value):
            remedy = f'add the frames: "{value.strip()}:00"'
        raise invalid(str(error), remedy, kind="time-code") from error


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def _span(text: str) -> timedelta:
    seconds = float(text.strip()[:-1]) * _UNITS[text.strip()[-1]]
    if seconds > 1e10:
        raise invalid("must be a duration of at most 1e10 seconds", "write a shorter one")
    return timedelta(seconds=seconds)


def _when(value: Any) -> datetime | date:
    if isinstance(value, datetime | date):
        return value
    try:
        text = value.strip() if isinstance(value, str) else ""
        if not re.match(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d|$)", text, re.ASCII):
            raise ValueError(text)
        if len(text) <= 10:
            return parse_date(text)
        return parse_datetime(text)
    except ValueError as error:
        raise invalid(
            f"must be a date or a date and time, not {shown_value(value)}",
            "write 2026-11-13, or 2026-11-13T18:00:00",
        ) from error


def _timezone(value: Any) -> str:
    name = value if isinstance(value, str) else ""
    try:
        ZoneInfo(name)
    except (OSError, ValueError, KeyError) as error:
        raise invalid(
            f"unknown time zone {str(value)[:40]!r}", "use an IANA name such as Europe/Oslo"
        ) from error
    return name


_TC = r"^\s*(\d{1,9}|\d{2,6}:[0-5]\d:[0-5]\d([:;]\d{2,3}|\.\d{1,12}))\s*$"
_POSITIONS: Final[list[dict[str, Any]]] = [
    {"type": "integer", "minimum": 0, "maximum": MOST},
    {"type": "string", "pattern": _TC},
]

Pos = Annotated[Timecode, Read(_position, "a time code or frames", anyOf=_POSITIONS)]
ClearablePos = Annotated[
    Timecode | str,
    Read(
        lambda value: "" if isinstance(value, str) and not value else _position(value),
        "a time code or frames, or empty",
        anyOf=[*_POSITIONS, {"type": "string", "maxLength": 0}],
    ),
]
"""A position, or an empty text, which clears the field."""
duration = matching(
    r"^\s*[0-9]{1,9}(\.[0-9]{1,6})?\s*[smhd]\s*$",
    "must be a duration such as 90s, 30m, 2h or 3d, not {}",
    "write a number with s, m, h or d",
    convert=_span,
    words="a duration such as 90s, 30m, 2h, 3d",
)
Span = Annotated[timedelta, duration]
_DATE = r"^\s*\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])([T ]\d\d:\d\d.*)?\s*$"
When = Annotated[
    datetime | date, Read(_when, "a date, or a date and time", type="string", pattern=_DATE)
]
TimezoneName = Annotated[str, Read(_timezone, type="string")]
