"""``msauto doc [TOPIC]``: the reference in the terminal, made from the code it describes."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

from msauto.cli.flags import no_color_flag
from msauto.cli.help import HelpCommand
from msauto.cli.output import can_draw, print_paged, terminal_width, use_colour
from msauto.errors import MsautoError, nearest
from msauto.playbook.reference import TOPICS, ReferenceTopic, module
from msauto.report.layout import Layout, Line, TextSpan, render_lines, words

if TYPE_CHECKING:
    from msauto.playbook.templates.reference import ReferenceEntry

_LISTS: Mapping[str, str] = {
    "facts": "The facts of an asset for templates: asset.NAME.",
    "variables": "The variables of every template.",
    "positions": "Formats of positions and durations. Quote time codes.",
    "filters": "Filters: VALUE | filter.",
    "tests": "Tests, for when, where and that: VALUE is test.",
    "lookups": "Files and environment for templates: lookup(NAME, ...).",
}
"""The lists of what templates can use: each is a function of ``templates.reference``."""
_NOTE = (
    "Any value can be a template, except those marked (no template). A key without a value is an error: "
    'write "" to clear, or omit the key. [] in a key means each item of the list.'
)
_NARROWEST, _WIDEST = 40, 110


@click.command("doc", cls=HelpCommand)
@click.argument("topic", default="", metavar="[TOPIC]")
@no_color_flag
def command(*, topic: str, no_color: bool) -> None:
    """Show the reference of a module (asset, rss, ...), play, task, facts or filters; without TOPIC, list topics.

    Another word, such as markers, is searched for in all of them.
    """
    width = min(terminal_width(sys.stdout) or _WIDEST, _WIDEST)
    colour = use_colour(sys.stdout, no_color=no_color)
    layout = Layout(colour, width=max(width, _NARROWEST), ascii_only=not can_draw(sys.stdout))
    print_paged("".join(render_lines(_lines(topic), layout)))


def _topics() -> dict[str, str]:
    """Return the summary of each topic, by name."""
    return {**TOPICS, **_LISTS}


class _EntryList(NamedTuple):
    summary: str
    entries: Sequence[ReferenceEntry]


def _find(name: str) -> ReferenceTopic | _EntryList:
    """Return the topic of a module, or a list of entries; else the entries that have this word."""
    if name in TOPICS:
        return module(name)
    from msauto.playbook.templates import reference

    for topic in (name, f"{name}s"):
        if topic in _LISTS:
            return _EntryList(_LISTS[topic], getattr(reference, topic)())
    entries = [*_all_entries()]
    word = re.compile(rf"\b{re.escape(name.removesuffix('s') or name)}", re.IGNORECASE)
    by_name = [entry for entry in entries if word.search(entry.name.partition(": ")[2])]
    found = by_name or [entry for entry in entries if word.search(entry.words)]
    if found:
        return _EntryList(
            "Not a topic, but in these (TOPIC: entry). One topic with all its entries: msauto doc TOPIC",
            found,
        )
    raise MsautoError(f"{name!r} not found in the reference", remedy=nearest(name, [*_topics()]))


def _all_entries() -> Iterator[ReferenceEntry]:
    """Yield the entries of all topics; the name of each begins with its topic."""
    from msauto.playbook.templates import reference

    for topic in TOPICS:
        for key in module(topic).keys:
            yield reference.ReferenceEntry(f"{topic}: {key.path}", f"({key.kind}) {key.words}")
    for topic in _LISTS:
        for entry in getattr(reference, topic)():
            yield reference.ReferenceEntry(f"{topic}: {entry.name}", entry.words)


# Lines ---------------------------------------------------------------------------------------------------------


def _lines(name: str) -> Iterator[Line]:
    if not name:
        yield _head("Topics: msauto doc TOPIC")
        topics = _topics()
        width = max(map(len, topics))
        for topic, summary in topics.items():
            yield words(f"  {topic:<{width}}  {summary}", hang=width + 4)
        return
    found = _find(name)
    if isinstance(found, ReferenceTopic):
        yield from _topic(found)
    else:
        yield from _entries(name, *found)


def _head(text: str) -> Line:
    return Line((TextSpan(text, "bold"),), wrapped=False)


def _line(text: str = "") -> Line:
    return Line((TextSpan(text),), wrapped=False)


def _topic(topic: ReferenceTopic) -> Iterator[Line]:
    yield _head(topic.name)
    yield words(f"  {topic.words}")
    yield _line()
    yield _head("Keys")
    for key in topic.keys:
        kind = key.kind
        if key.needed:
            kind += ", needed"
        if not key.template:
            kind += ", no template"
        path = TextSpan(key.path, "bold")
        yield Line((TextSpan("  "), path, TextSpan(f"  ({kind})", together=False)), 10)
        yield words(f"      {key.words}", hang=6)
    yield _line()
    yield words(_NOTE, hang=0)
    yield _line()
    yield _head("Examples")
    for line in "\n".join(topic.examples).splitlines():
        yield _line(f"  {line}".rstrip())


def _entries(name: str, summary: str, entries: Sequence[ReferenceEntry]) -> Iterator[Line]:
    yield _head(name)
    yield words(f"  {summary}")
    for entry in entries:
        yield _line()
        yield _head(f"  {entry.name}")
        yield words(f"      {entry.words}", hang=6)
        if entry.example:
            yield Line((TextSpan(f"      {entry.example}"), TextSpan(f"  →  {entry.result}")), 8)
