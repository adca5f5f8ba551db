"""``msauto doc [TOPIC]``: the reference in the terminal, made from the code it describes."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import click
from click.shell_completion import CompletionItem

from msauto.cli.flags import no_color_flag
from msauto.cli.output import print_result, terminal_width, use_colour
from msauto.errors import MsautoError
from msauto.playbook.reference import template_docs
from msauto.playbook.reference.doc_pages import render_topic
from msauto.playbook.reference.module_docs import ReferenceKey, ReferenceTopic, module, modules
from msauto.playbook.reference.template_docs import ReferenceEntry
from msauto.playbook.yaml.document import nearest
from msauto.report.json import dump

_LISTS: Mapping[str, tuple[str, Callable[[], Sequence[ReferenceEntry]]]] = {
    "facts": ("The facts of an asset for templates: asset.NAME.", template_docs.facts),
    "variables": ("The variables of every template.", template_docs.variables),
    "positions": ("Formats of positions and durations. Quote time codes.", template_docs.positions),
    "filters": ("Filters: VALUE | filter.", template_docs.filters),
    "tests": ("Tests, for when, where and that: VALUE is test.", template_docs.tests),
    "lookups": ("Files and environment for templates: lookup(NAME, ...).", template_docs.lookups),
}
_NOTE = """Any value can be a template, except those marked (no template). A key without a value is an error:
write "" to clear, or omit the key. [] in a key means each item of the list."""


_WIDEST = 110


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    del ctx, param
    return [CompletionItem(name, help=summary) for name, summary in _topics() if name.startswith(incomplete)]


@click.command("doc")
@click.argument("topic", default="", metavar="[TOPIC]", shell_complete=_complete)
@click.option(
    "--format", "form", type=click.Choice(["text", "json", "markdown"]), default="text", help="Form of the result."
)
@no_color_flag
def command(*, topic: str, form: str, no_color: bool) -> None:
    """Show the reference of a module (asset, rss, ...), play, task, facts or filters; without TOPIC, list topics."""
    if form == "json":
        print_result(dump(_as_json(topic)))
    elif form == "markdown":
        print_result(_as_markdown(topic))
    else:
        width = min(terminal_width(sys.stdout) or _WIDEST, _WIDEST)
        style = _TextStyle(use_colour(sys.stdout, no_color=no_color), width)
        print_result("\n".join(_as_text(topic, style)))


def _topics() -> list[tuple[str, str]]:
    """Return name and summary of each topic."""
    lists = ((name, summary) for name, (summary, _) in _LISTS.items())
    return [*((each.name, each.words) for each in modules()), *lists]


def _find(name: str) -> ReferenceTopic | tuple[str, Sequence[ReferenceEntry]]:
    """Return the topic of a module, or a list of entries with its summary."""
    if name in _LISTS:
        summary, entries = _LISTS[name]
        return summary, entries()
    try:
        return module(name)
    except KeyError:
        raise MsautoError(f"topic {name!r} not found", remedy=nearest(name, [each for each, _ in _topics()])) from None


# Text ----------------------------------------------------------------------------------------------------------


class _TextStyle:
    """The look of the text: bold headings if it is coloured, lines no wider than the terminal."""

    def __init__(self, colour: bool, width: int) -> None:
        self._colour = colour
        self._width = max(width, 40)

    def head(self, text: str) -> str:
        return click.style(text, bold=True) if self._colour else text

    def wrap(self, text: str, indent: int, *, hang: int = 0) -> Iterator[str]:
        first, rest = " " * indent, " " * (indent + hang)
        yield from textwrap.wrap(
            text, self._width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
        )


def _as_text(name: str, style: _TextStyle) -> Iterator[str]:
    if not name:
        yield from _contents(style)
        return
    found = _find(name)
    if isinstance(found, ReferenceTopic):
        yield from _topic(found, style)
    else:
        yield from _entries(name, *found, style)


def _contents(style: _TextStyle) -> Iterator[str]:
    yield style.head("Topics: msauto doc TOPIC")
    topics = _topics()
    width = max(len(name) for name, _ in topics)
    yield from (f"  {name:<{width}}  {summary}" for name, summary in topics)


def _topic(topic: ReferenceTopic, style: _TextStyle) -> Iterator[str]:
    yield style.head(topic.name)
    yield from style.wrap(topic.words, 2)
    yield ""
    yield style.head("Keys")
    for key in topic.keys:
        for number, line in enumerate(style.wrap(f"{key.path}  ({_kind(key)})", 2, hang=8)):
            yield line if number else line.replace(key.path, style.head(key.path), 1)
        yield from style.wrap(key.words, 6)
    yield ""
    yield from _NOTE.splitlines()
    yield ""
    yield style.head("Examples")
    for number, example in enumerate(topic.examples):
        yield from [""] if number else []
        yield from (f"  {line}" if line else "" for line in example.splitlines())


def _kind(key: ReferenceKey) -> str:
    return key.kind + (", needed" if key.needed else "") + ("" if key.template else ", no template")


def _entries(name: str, summary: str, entries: Sequence[ReferenceEntry], style: _TextStyle) -> Iterator[str]:
    yield style.head(name)
    yield from style.wrap(summary, 2)
    for entry in entries:
        yield ""
        yield f"  {style.head(entry.name)}"
        yield from style.wrap(entry.words, 6)
        if entry.example:
            yield f"      {entry.example}  →  {entry.result}"


# Other forms ---------------------------------------------------------------------------------------------------


def _as_json(name: str) -> Any:
    if not name:
        return [{"name": each, "words": summary} for each, summary in _topics()]
    found = _find(name)
    if isinstance(found, ReferenceTopic):
        return asdict(found)
    return {"name": name, "words": found[0], "entries": [asdict(each) for each in found[1]]}


def _as_markdown(name: str) -> str:
    if not name:
        return "".join(f"- `{each}`: {summary}\n" for each, summary in _topics())
    found = _find(name)
    if isinstance(found, ReferenceTopic):
        return render_topic(found)
    lines = (f"- `{each.name}`: {each.words}" + _sample(each) for each in found[1])
    return f"## {name}\n\n{found[0]}\n\n" + "".join(f"{line}\n" for line in lines)


def _sample(entry: ReferenceEntry) -> str:
    return f". ``{entry.example}`` gives ``{entry.result}``" if entry.example else ""
