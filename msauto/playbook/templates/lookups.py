"""``lookup()``: what templates may read, from files of the repository and the environment."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from jinja2 import pass_context
from jinja2.runtime import Context

from msauto import sockets
from msauto.codec import parse_json
from msauto.documents.csv_cells import as_written
from msauto.documents.document import MarkedTemplate, shallow
from msauto.documents.loader import load_yaml, plain
from msauto.documents.text_files import (
    TextFileError,
    check_header,
    check_json_size,
    decode,
    table_rows,
)
from msauto.errors import InputError, nearest
from msauto.playbook.input_files import LookupContext
from msauto.playbook.templates.filters import LOOKUPS, template_lookup
from msauto.playbook.templates.names import TemplateFunctionError
from msauto.secrets.sources import NAMED, leaves

_REQUIRED = object()


@pass_context
def lookup(context: Context, kind: str, *names: str, **options: Any) -> Any:
    """Read a file of the repository, or the environment: ``lookup("csv", "promos.csv")``; several give a list."""
    surroundings: LookupContext = context.scope.surroundings  # type: ignore[attr-defined] # a ScopeContext
    reader = reader_of(str(kind))
    if not names:
        raise TemplateFunctionError(
            f"lookup({kind!r}) needs a name", f"write lookup({kind!r}, 'NAME')"
        )
    known = list(inspect.signature(reader).parameters)[2:]
    for option in options:
        if option not in known:
            raise TemplateFunctionError(
                f"lookup({kind!r}) has no option {option!r}", nearest(option, known)
            )
    values = [reader(surroundings, str(name), **options) for name in names]
    return values[0] if len(values) == 1 else values


def reader_of(kind: str) -> Callable[..., Any]:
    """Return the function of a lookup, ours or that of a plugin."""
    if kind in LOOKUPS:
        return LOOKUPS[kind]
    place = sockets.place_of("lookups", kind)
    if place is None:
        known = [*LOOKUPS, *sockets.names_of("lookups")]
        raise TemplateFunctionError(f"unknown lookup {kind!r}", nearest(kind, known))
    reader: Callable[..., Any] = sockets.load_place(place)
    return reader


@template_lookup
def lookup_csv(
    context: LookupContext, name: str, delimiter: str = "", encoding: str = "", header: Any = 1
) -> list[dict[str, str]]:
    """The rows of a CSV file by the names of its header.

    All values are text. `items` of `rss`, `loop` and `vars` take the rows as they are. A `'` before a formula, as in
    CSV of msauto, is left out. Option delimiter=';' is the sign between the values; without it, a first line `sep=;` or
    the header decides: a comma, a semicolon or a tab. Option header=3 is the line of the header, if titles are above
    it. Option encoding='cp1252' is for a file that is not UTF-8.

    Example: lookup('csv', 'promos.csv')
    """
    content = context.read(name)
    place = context.shown(name)
    if not isinstance(header, int) or header < 1:
        raise TemplateFunctionError("header is not the number of a line", "write header=2")
    try:
        text = decode(content, str(encoding))
        table, between = table_rows(text, str(delimiter), header)
        rows = [(line, list(map(as_written, cells))) for line, cells in table if cells]
        if not rows:
            return []
        first, names = rows[0]
        check_header(first, names)
    except TextFileError as error:
        raise TemplateFunctionError(f"{place}:{error.line or 1}: {error}", error.remedy) from error
    has_nameless = "" in names
    for line, cells in rows:
        if len(cells) != len(names):
            why = f"{place}:{line}: the row has {len(cells)} values, and the header {len(names)} names"
            remedy = f"write {between!r} between all values, also empty ones, and quote a value that contains it; "
            remedy += "if titles are above the header, name its line: header=2"
            raise TemplateFunctionError(why, remedy)
        if has_nameless:
            _check_nameless(names, cells, f"{place}:{line}")
    context.files.headers.setdefault(tuple(names), {})[f"{place}:{first}"] = None
    return [dict(zip(names, cells, strict=True)) for _, cells in rows[1:]]


def _check_nameless(names: Sequence[str], cells: Sequence[str], place: str) -> None:
    """Raise :class:`TemplateFunctionError` for a value that no name leads to."""
    for name, cell in zip(names, cells, strict=True):
        if cell and not name:
            why = f"{place}: the column of {cell[:40]!r} has no name"
            raise TemplateFunctionError(why, "name it in the header, or remove the column")


@template_lookup
def lookup_env(context: LookupContext, name: str, default: Any = _REQUIRED) -> Any:
    """A variable of the environment; default='' if it may be missing.

    Example: lookup('env', 'NOPE', default='-')
    """
    value = context.env.get(name, default)
    if value is _REQUIRED:
        raise TemplateFunctionError(
            f"the environment variable {name} is not set", "set it, or add default=''"
        )
    return value


@template_lookup
def lookup_file(context: LookupContext, name: str) -> str:
    """The text of a file.

    Example: lookup('file', 'note.txt')
    """
    return context.text(name).rstrip("\n")


@template_lookup
def lookup_fileglob(context: LookupContext, pattern: str) -> list[str]:
    """The files of a folder whose names match, in order: paths that other lookups take.

    Only the last part of the path may contain `*`, `?` and `[…]`.

    Example: lookup('fileglob', '*.csv')
    """
    return context.matching(pattern)


@template_lookup
def lookup_json(context: LookupContext, name: str) -> Any:
    """The value of a JSON file.

    Example: lookup('json', 'show.json').title
    """
    text = context.text(name)
    try:
        check_json_size(text)
        return shallow(parse_json(text))
    except TextFileError as error:
        raise TemplateFunctionError(f"{name!r}: {error}", error.remedy) from error
    except (ValueError, RecursionError) as error:
        why = f"the file {name!r} is not valid JSON: {error}"
        raise TemplateFunctionError(why, "correct it, or export it again") from error


@template_lookup
def lookup_secret(context: LookupContext, name: str) -> str:
    """A secret that a command of the settings prints; `!secret {name: NAME}` is short for it.

    Example: lookup('secret', 'partner')
    """
    tracker = context.files.tracker
    secret = tracker.add(context.secret(name))
    tracker.touched = True
    return secret


@template_lookup
def lookup_yaml(context: LookupContext, name: str) -> Any:
    """The value of a YAML file.

    Example: lookup('yaml', 'show.yml')
    """
    try:
        data = load_yaml(context.read(name), name).data
    except InputError as error:
        problem = error.problems[0]
        remedy = problem.remedy or "correct the file"
        raise TemplateFunctionError(f"{problem.place}: {problem.message}", remedy) from error
    if any(text.startswith(NAMED) for _, text in leaves(data, MarkedTemplate)):
        why = f"the file {name!r} names a secret, and what a lookup reads is not evaluated"
        raise TemplateFunctionError(why, "read it as variables: vars_files", kind="secret")
    values = plain(data, keep_secrets=True)  # the result of a lookup is not rendered
    context.files.tracker.add_tagged(values)
    return values
