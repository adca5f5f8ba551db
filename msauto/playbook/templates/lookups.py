"""``lookup()``: what templates may read, from files of the repository and the environment."""

from __future__ import annotations

import csv
import inspect
import io
from collections import Counter
from collections.abc import Mapping
from typing import Any

from jinja2 import pass_context
from jinja2.runtime import Context

from msauto.codec import parse_json
from msauto.csv_cells import as_written
from msauto.documents.document import shallow
from msauto.documents.loader import load_yaml, plain
from msauto.errors import InputError, nearest
from msauto.playbook.input_files import LookupContext
from msauto.playbook.templates.filters import LOOKUPS, template_lookup
from msauto.playbook.templates.names import TemplateFunctionError
from msauto.secrets.sources import NAMED, secret_paths

_REQUIRED = object()


@pass_context
def lookup(context: Context, kind: str, *names: str, **options: Any) -> Any:
    """Read a file of the repository, or the environment: ``lookup("csv", "promos.csv")``; several give a list."""
    surroundings: LookupContext = context.scope.surroundings  # type: ignore[attr-defined] # a ScopeContext
    reader = LOOKUPS.get(kind)
    if reader is None:
        raise TemplateFunctionError(f"unknown lookup {kind!r}", nearest(str(kind), LOOKUPS))
    if not names:
        raise TemplateFunctionError(f"lookup({kind!r}) needs a name")
    known = list(inspect.signature(reader).parameters)[2:]
    for option in options:
        if option not in known:
            raise TemplateFunctionError(f"lookup({kind!r}) has no option {option!r}", nearest(option, known))
    values = [reader(surroundings, str(name), **options) for name in names]
    return values[0] if len(values) == 1 else values


@template_lookup
def lookup_csv(context: LookupContext, name: str, delimiter: str = "", encoding: str = "") -> list[dict[str, str]]:
    """The rows of a CSV file by the names of its header.

    All values are text. `items` of `rss`, `loop` and `vars` take the rows as they are. A `'` before a formula, as in
    CSV of msauto, is left out. Option delimiter=';' is the sign between the values; without it, the header decides: a
    comma, a semicolon or a tab. Option encoding='cp1252' is for a file that is not UTF-8.

    Example: lookup('csv', 'promos.csv')
    """
    from msauto.plugins.timelines.formats import decode
    from msauto.plugins.timelines.tables import header_delimiter
    from msauto.plugins.timelines.timeline import TimelineError

    content, place, line = context.read(name), context.shown(name), 1
    rows: list[tuple[int, list[str]]] = []
    try:
        text = decode(content, str(encoding))
        between = str(delimiter) or header_delimiter(text)
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=between)
        for cells in reader:
            rows += [(line, [*map(as_written, cells)])] if cells else []
            line = reader.line_num + 1
    except TimelineError as error:
        raise TemplateFunctionError(f"{place}:{error.line or 1}: {error}", error.remedy) from error
    except (csv.Error, TypeError) as error:
        why = f"{place}:{line}: the file is not valid CSV: {error}"
        raise TemplateFunctionError(why, "check its quotes, and delimiter=") from error
    if not rows:
        return []
    first, header = rows[0]
    twice = next((name for name, number in Counter(header).items() if name and number > 1), None)
    if twice is not None:
        remedy = "rename or remove one of the columns"
        raise TemplateFunctionError(f"{place}:{first}: the header has the name {twice!r} twice", remedy)
    for line, cells in rows:
        if len(cells) != len(header):
            why = f"{place}:{line}: the row has {len(cells)} values, and the header {len(header)} names"
            remedy = f"write {between!r} between all values, also empty ones, and quote a value that contains it"
            raise TemplateFunctionError(why, remedy)
    context.files.headers.setdefault(tuple(header), {})[f"{place}:{first}"] = None
    return [dict(zip(header, cells, strict=True)) for _, cells in rows[1:]]


@template_lookup
def lookup_env(context: LookupContext, name: str, default: Any = _REQUIRED) -> Any:
    """A variable of the environment; default='' if it may be missing.

    Example: lookup('env', 'NOPE', default='-')
    """
    value = context.env.get(name, default)
    if value is _REQUIRED:
        raise TemplateFunctionError(f"the environment variable {name} is not set", "set it, or add default=''")
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
    try:
        return shallow(parse_json(context.text(name)))
    except (ValueError, RecursionError) as error:
        raise TemplateFunctionError(f"the file {name!r} is not valid JSON: {error}") from error


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
def lookup_timeline(
    context: LookupContext,
    name: str,
    rate: Any = None,
    origin: str | int = "",
    tracks: Mapping[str, str] | None = None,
    columns: Mapping[str, str] | None = None,
    encoding: str = "",
) -> dict[str, list[dict[str, Any]]]:
    """The markers and segments of a timeline: EDL, OTIO, WebVTT, SRT, CSV, XLSX, or a marker list of Avid.

    Positions are frames. Colours become tracks; tracks={'red': 'Cue Point'} sets them.

    Example: lookup('timeline', 'cuts.edl', rate=25, origin='10:00:00:00').markers
    """
    from msauto.plugins.timelines.formats import read_timeline
    from msauto.plugins.timelines.timeline import TimelineClock, TimelineError, joined, parse_origin, parse_rate

    content = context.read(name)
    try:
        if rate is None:
            raise TimelineError("the frame rate is missing", "add rate=asset.rate")
        clock = TimelineClock(parse_rate(rate), parse_origin(origin) if str(origin) else None)
        timeline = read_timeline(content, name, clock, tracks=tracks, columns=columns, encoding=str(encoding))
    except TimelineError as error:
        place = f"{name}:{error.line}" if error.line else name
        raise TemplateFunctionError(f"{place}: {error}", error.remedy or nearest(*error.unknown)) from error
    return {
        "markers": [each.as_item() for each in joined(timeline.markers)],
        "segments": [each.as_item() for each in timeline.segments],
    }


@template_lookup
def lookup_yaml(context: LookupContext, name: str) -> Any:
    """The value of a YAML file.

    Example: lookup('yaml', 'show.yml')
    """
    try:
        data = load_yaml(context.read(name), name).data
    except InputError as error:
        raise TemplateFunctionError(str(error.problems[0])) from error
    if any(text.startswith(NAMED) for _, text in secret_paths(data)):
        why = f"the file {name!r} names a secret, and what a lookup reads is not evaluated"
        raise TemplateFunctionError(why, "read it as variables: vars_files", kind="secret")
    context.files.tracker.add_tagged(data, templates=True)  # the result of a lookup is not rendered
    return plain(data, keep_secrets=True)
