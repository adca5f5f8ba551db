"""``msauto doc [TOPIC]``: the reference in the terminal, made from the code it describes."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
from msgspec import to_builtins

from msauto.cli.flags import no_color_flag
from msauto.cli.help import HelpCommand
from msauto.cli.output import can_draw, print_paged, print_result, terminal_width, use_colour
from msauto.errors import MsautoError, nearest
from msauto.playbook.reference import TOPICS, ReferenceTopic, module, render_topic
from msauto.report.json import dump
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
@click.option(
    "--format", "form", type=click.Choice(["text", "json", "markdown"]), default="text", help="Form of the result."
)
@no_color_flag
def command(*, topic: str, form: str, no_color: bool) -> None:
    """Show the reference of a module (asset, rss, ...), play, task, facts or filters; without TOPIC, list topics.

    Another word, such as markers, is searched for in all of them.
    """
    if form == "json":
        print_result(dump(_as_json(topic)))
    elif form == "markdown":
        print_result(_as_markdown(topic))
    else:
        width = min(terminal_width(sys.stdout) or _WIDEST, _WIDEST)
        colour = use_colour(sys.stdout, no_color=no_color)
        layout = Layout(colour, width=max(width, _NARROWEST), ascii_only=not can_draw(sys.stdout))
        print_paged("".join(render_lines(_as_text(topic), layout)))


def _topics() -> list[tuple[str, str]]:
    """Return name and summary of each topic."""
    return [*TOPICS.items(), *_LISTS.items()]


def _find(name: str) -> ReferenceTopic | tuple[str, Sequence[ReferenceEntry]]:
    """Return the topic of a module, or a list of entries with its summary; else the entries that have this word."""
    if name in TOPICS:
        return module(name)
    from msauto.playbook.templates import reference

    if (listed := name if name in _LISTS else f"{name}s") in _LISTS:
        return _LISTS[listed], getattr(reference, listed)()
    known = {topic: [(key.path, f"({key.kind}) {key.words}") for key in module(topic).keys] for topic in TOPICS}
    known |= {topic: [(each.name, each.words) for each in getattr(reference, topic)()] for topic in _LISTS}
    word = re.compile(rf"\b{re.escape(name.removesuffix('s') or name)}", re.IGNORECASE)
    for place in (0, 1):  # in names; else in what they mean
        found = [
            reference.ReferenceEntry(f"{topic}: {each[0]}", each[1])
            for topic, entries in known.items()
            for each in entries
            if word.search(each[place])
        ]
        if found:
            return "Not a topic, but in these (TOPIC: entry). One topic with all its entries: msauto doc TOPIC", found
    raise MsautoError(f"{name!r} not found in the reference", remedy=nearest(name, [each for each, _ in _topics()]))


# Text ----------------------------------------------------------------------------------------------------------


def _as_text(name: str) -> Iterator[Line]:
    if not name:
        yield _head("Topics: msauto doc TOPIC")
        topics = _topics()
        width = max(len(name) for name, _ in topics)
        yield from (words(f"  {name:<{width}}  {summary}", hang=width + 4) for name, summary in topics)
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
    yield from (_head(topic.name), words(f"  {topic.words}"), _line(), _head("Keys"))
    for key in topic.keys:
        kind = key.kind + (", needed" if key.needed else "") + ("" if key.template else ", no template")
        yield Line((TextSpan("  "), TextSpan(key.path, "bold"), TextSpan(f"  ({kind})", together=False)), 10)
        yield words(f"      {key.words}", hang=6)
    yield from (_line(), words(_NOTE, hang=0), _line(), _head("Examples"))
    for number, example in enumerate(topic.examples):
        yield from [_line()] if number else []
        yield from (_line(f"  {line}" if line else "") for line in example.splitlines())


def _entries(name: str, summary: str, entries: Sequence[ReferenceEntry]) -> Iterator[Line]:
    yield from (_head(name), words(f"  {summary}"))
    for entry in entries:
        yield from (_line(), _head(f"  {entry.name}"), words(f"      {entry.words}", hang=6))
        if entry.example:
            yield Line((TextSpan(f"      {entry.example}"), TextSpan(f"  →  {entry.result}")), 8)


# Other forms ---------------------------------------------------------------------------------------------------


def _as_json(name: str) -> Any:
    if not name:
        return [{"name": each, "words": summary} for each, summary in _topics()]
    found = _find(name)
    if isinstance(found, ReferenceTopic):
        return to_builtins(found)
    return {"name": name, "words": found[0], "entries": to_builtins(found[1])}


def _as_markdown(name: str) -> str:
    if not name:
        return "".join(f"- `{each}`: {summary}\n" for each, summary in _topics())
    found = _find(name)
    if isinstance(found, ReferenceTopic):
        return render_topic(found)
    samples = (f". ``{each.example}`` gives ``{each.result}``" if each.example else "" for each in found[1])
    lines = (f"- `{each.name}`: {each.words}{sample}\n" for each, sample in zip(found[1], samples, strict=True))
    return f"## {name}\n\n{found[0]}\n\n{''.join(lines)}"
