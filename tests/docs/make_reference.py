"""Writes the pages of the reference that are made from the code: ``python -m tests.docs.make_reference``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from itertools import groupby
from typing import Any, get_args, get_type_hints

import click
from msgspec.structs import replace

from msauto.cli import flags as cli_flags
from msauto.cli.help import SECTIONS, in_sections
from msauto.cli.main import group
from msauto.model.fields import LINK_FIELDS
from msauto.model.server import Dialect
from msauto.playbook.reference import TOPICS, ReferenceKey, ReferenceTopic, module
from msauto.playbook.templates import reference
from msauto.plugins.batch.batch_result import batch_result_schema
from msauto.report.event_lines import LINES, events_schema
from tests.docs.pages import ROOT
from tests.docs.reference.error_index import error_index_page

_MADE = "<!-- Made from the code by `python -m tests.docs.make_reference`: change the code, not this page. -->\n\n"


_LOOKUPS = """
## Lookups

Files are searched for beside the playbook, inside [its repository](files.md). `[lookup] folders` in `msauto.toml` opens
others.

"""


def modules_page() -> str:
    """Return the page of plays, tasks and modules."""
    intro = (
        "# Plays, tasks and modules: every key\n\n"
        "Every value may be a template, except those marked †. `[]` in a key means: of each item of the list.\n"
        "`msauto doc NAME` has examples, which together use every key.\n\n"
    )
    return _MADE + intro + "\n".join(_topic(name) for name in TOPICS)


def _topic(name: str) -> str:
    """Return a topic without its examples; what a module has in common with ``asset`` is described there."""
    topic = module(name)
    if name not in {"play", "task", "asset"}:
        shared = {key.path for key in topic.keys if key in module("asset").keys}
        text = render_topic(
            replace(
                topic, examples=(), keys=tuple(key for key in topic.keys if key.path not in shared)
            )
        )
        if shared:
            text += f"| {', '.join(f'`{path}`' for path in sorted(shared))} | as of `asset` | |\n"
    else:
        text = render_topic(replace(topic, examples=()))
    text = re.sub(r"(\| a time code or frames[^|]*\| [^|]*): a time code or frames", r"\1", text)
    return text.replace(" (no template) |", " † |")


def render_topic(topic: ReferenceTopic) -> str:
    """Return a module, a play or a task as Markdown; keys that mean the same share a row."""
    rows: list[Sequence[str]] = []
    for cells, keys in groupby(topic.keys, _cells):
        paths = ", ".join(f"`{key.path}`" for key in keys)
        rows.append((paths, *cells))
    examples = "".join(f"\n```yaml\n{example}```\n" for example in topic.examples)
    return f"## {topic.name}\n\n{topic.words}\n\n{table(('key', 'value', 'means'), rows)}{examples}"


_FIELDS_OF_LINKS = {f"links[].{field.name}" for field in LINK_FIELDS}


def _cells(key: ReferenceKey) -> tuple[str, str]:
    if key.path in _FIELDS_OF_LINKS:
        return "as of `fields`", "link fields of the link"
    kind = f"{key.kind}, needed" if key.needed else key.kind
    words = key.words if key.template else f"{key.words} (no template)"
    return kind, words


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as Markdown."""
    text = ""
    for row in (head, ["---"] * len(head), *rows):
        cells = [cell.replace("|", "\\|") for cell in row]
        text += f"| {' | '.join(cells)} |\n"
    return text


def filters_page() -> str:
    """Return the page of filters, tests and lookups."""
    intro = (
        "# Filters, tests, lookups: every one\n\n"
        "As in Ansible and Jinja, and more for time codes. All are deterministic: the same playbook gives the same\n"
        "plan. `words` is `[news, evening]`, `shows` a list of mappings with `title` and `kind`.\n\n"
    )
    return (
        _MADE
        + intro
        + "## Filters\n\n"
        + _entries(reference.filters())
        + '\n## Tests\n\nFor `when`, `where`, `that` and `if`: `asset.title is match("EP")`.\n\n'
        + table(("name", "means"), [(f"`{each.name}`", each.words) for each in reference.tests()])
        + _LOOKUPS
        + _entries(reference.lookups())
        + "\nOne of Ansible or Jinja that is not here is answered with what does the same.\n"
    )


def facts_page() -> str:
    """Return the page of facts and given names."""
    intro = (
        "# Facts and given names\n\n"
        "The names that templates can use. A fact is read from the server only if a template uses it.\n\n"
        "## Facts of the asset\n\n"
        "Any other attribute that the server reports is available as well: `asset.NAME`, or `asset['NAME']`. One that\n"
        "it does not report is an error, except with `| default(...)` or `is defined`.\n\n"
    )
    names = "\n## Given names\n\nIn addition to the variables of the playbook, and `item` in a loop:\n\n"
    found = [(f"`{each.name}`", each.words, _code(each.result)) for each in reference.facts()]
    return (
        _MADE
        + intro
        + table(("fact", "means", "gives"), found)
        + names
        + _entries(reference.variables())
    )


def _entries(entries: Iterable[reference.ReferenceEntry]) -> str:
    rows = [
        (f"`{each.name}`", each.words, _code(each.example), _code(each.result)) for each in entries
    ]
    return table(("name", "means", "example", "gives"), rows)


def _code(text: str) -> str:
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}"


PAGES: Mapping[str, Callable[[], str]] = {
    "modules": modules_page,
    "filters": filters_page,
    "facts": facts_page,
}
"""The pages by name, each ``docs/reference/<name>.md``."""


BATCH_RESULT = """
The summary of a batch: `msauto batch run --format json`, and `msauto report` and `msauto history` of a batch. Its JSON
Schema, `msauto schema batch-result`, describes every key; this is the batch itself.

"""


def batch_result_section() -> str:
    """Return the section about the summary of a batch, from its schema."""
    return BATCH_RESULT + _keys(batch_result_schema())


EVENTS = """
`msauto plan`, `apply` and `undo` write what happens to a file with `--events FILE`, for programs that follow a run: one
JSON object for each line. The JSON Schema of a line, `msauto schema events`, describes every key.

- `command_ended` is the last line. Without it the command was killed: `msauto history` shows what it did.
- The file is created for its owner only, and replaced by the next command that writes to it. A file that holds
  something else is not overwritten.
- `--events -` writes to stdout. The plan and the result then go to stderr.
- Messages of more than 500 characters are cut.
- If events cannot be written, stderr has one warning; the run and its exit code do not change.
- A new version of msauto may add keys and types of events within version 1: ignore what you do not know.

To follow a run in another terminal:

```text
tail -F run.jsonl | jq -r 'select(.type == "target_finished") | "\\(.outcome) \\(.target.name)"'
```
"""


def events_section() -> str:
    """Return the section about the events, from their schema, which describes every key."""
    parts = events_schema()["$defs"]
    begin = {
        name: key
        for name, key in parts["TargetStartedLine"]["properties"].items()
        if name != "target"
    }
    begin["type"] = {"description": begin["type"]["description"]}
    own = {
        kind.__name__: _without(parts[kind.__name__]["properties"], begin)
        for kind in LINES.values()
    }
    text = EVENTS + f"\n### Keys of every line\n\n{_keys({'properties': begin})}"
    rows = (_event_row(parts[name], keys) for name, keys in own.items())
    return text + "\n### The events\n\n| event | when | keys |\n|---|---|---|\n" + "".join(rows)


def _event_row(part: dict[str, Any], keys: dict[str, Any]) -> str:
    event = part["properties"]["type"]["enum"][0]
    return f"| `{event}` | {part['description'].rstrip('.')} | {', '.join(f'`{key}`' for key in keys)} |\n"


def _without(keys: dict[str, Any], others: dict[str, Any]) -> dict[str, Any]:
    return {name: key for name, key in keys.items() if name not in others}


def _keys(part: dict[str, Any]) -> str:
    rows = [f"| `{name}` | {_description(key)} |" for name, key in part["properties"].items()]
    return "\n".join(["| key | content |", "|---|---|", *rows]) + "\n"


def _description(key: dict[str, Any]) -> str:
    choices = [f"`{each}`" for each in key.get("enum", [])]
    return ": ".join(filter(None, (key.get("description", ""), ", ".join(choices))))


def dialect_keys() -> str:
    """Return the table of the dialect keys, from their registry."""
    hints = get_type_hints(Dialect)
    rows = []
    for key in fields(Dialect):
        hint, meaning = hints[key.name], key.metadata["description"]
        kind = "a number" if hint is int else "a text"
        choices = [f"`{value}`" for value in get_args(hint)]
        values = ", ".join(choices) or f"{kind}; `{key.default}`"
        rows.append(f"| `{key.name}` | {values} | {meaning} |\n")
    return "| key | values | means |\n|---|---|---|\n" + "".join(rows)


@click.command("shared")
@cli_flags.shared_flags_of(*cli_flags.PLAN_FORMS, more=(cli_flags.summary_flag,))
def _shared(**_: Any) -> None: ...


def _named(name: str) -> list[click.Command]:
    """Return a command by its full name; for a group, all of its commands."""
    found: list[click.Command] = [group]
    for word in name.split():
        parent = found[0]
        assert isinstance(parent, click.Group)
        command = parent.get_command(click.Context(parent), word)
        assert command is not None, name
        found = [command]
    return [*found[0].commands.values()] if isinstance(found[0], click.Group) else found


def shared_flags_table() -> str:
    """Return the table of the flags that commands share, in the sections of the help."""
    table = "| flag | meaning |\n|---|---|\n"
    for section, options in in_sections(_options(_shared)).items():
        table += f"| **{section}** | |\n"
        table += "".join(f"{_row(option)}\n" for option in options)
    return table


_BASES = {"apply": ("plan",), "rehearse": ("plan", "apply")}
"""The commands whose flags the table of a command does not repeat."""


def flags_table(name: str) -> str:
    """Return the table of the flags of a command, in the sections of its help; without those that commands share.

    ``apply`` and ``rehearse`` have most flags of ``plan``: only their own ones are in their tables.
    """
    left_out = {each.name for each in _shared.params}
    others = {_row(each) for other in _BASES.get(name, ()) for each in _options(*_named(other))}
    found: dict[str, dict[str, None]] = {section: {} for section in SECTIONS}
    for command in _named(name):
        own = (
            each
            for each in _options(command)
            if each.name not in left_out and _row(each) not in others
        )
        for section, options in in_sections(own).items():
            found[section] |= dict.fromkeys(map(_row, options))
    shown = {section: rows for section, rows in found.items() if rows}
    table = "| flag | meaning |\n|---|---|\n"
    for section, rows in shown.items():
        table += f"| **{section}** | |\n" if len(shown) > 1 else ""
        table += "".join(f"{row}\n" for row in rows)
    return table


def _options(command: click.Command) -> list[click.Option]:
    return [each for each in command.params if isinstance(each, click.Option)]


def _row(option: click.Option) -> str:
    value = option.make_metavar(click.Context(_shared))
    value = value[1:-1] if value.startswith("[") else value
    last = option.opts[-1] if option.is_flag or option.count else f"{option.opts[-1]} {value}"
    named = ", ".join(f"`{each}`" for each in [*option.opts[:-1], last, *option.secondary_opts])
    cells = (each.replace("|", "\\|") for each in (named, option.help or ""))
    return f"| {' | '.join(cells)} |"


MADE_PARTS: dict[str, list[tuple[str, str, Callable[[], str]]]] = {
    "commands.md": [],
    "json.md": [
        ("\n## Batch\n", "\n## Events\n", batch_result_section),
        ("\n## Events\n", "\n## What a", events_section),
    ],
    "dialect.md": [("| key | values | means |\n", "\nThe embedded server", dialect_keys)],
}
"""The parts of a page that are made from the code: what precedes and follows each, and what makes it."""


def _with_flags(found: re.Match[str]) -> str:
    table = shared_flags_table() if found[2] == "shared" else flags_table(found[2])
    return f"{found[1]}{table}\n"


def with_made_parts(name: str, text: str) -> str:
    """Return a page of the reference with the parts that are made from the code."""
    if name == "commands.md":
        return re.sub(r"(<!-- flags: ([a-z ]+) -->\n\n)(?:\|.*\n)*\n*", _with_flags, text)
    for before, after, made in MADE_PARTS[name]:
        head, _, rest = text.partition(before)
        begin = "" if made is dialect_keys else before
        text = head + begin + made() + after + rest.partition(after)[2]
    return text


if __name__ == "__main__":
    for name in PAGES:
        (ROOT / "docs" / "reference" / f"{name}.md").write_text(PAGES[name](), encoding="utf-8")
    (ROOT / "docs" / "reference" / "errors.md").write_text(error_index_page(), encoding="utf-8")
    for name in MADE_PARTS:
        path = ROOT / "docs" / "reference" / name
        path.write_text(with_made_parts(name, path.read_text(encoding="utf-8")), encoding="utf-8")
