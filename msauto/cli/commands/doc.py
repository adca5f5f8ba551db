"""``msauto doc [TOPIC]``: the reference in the terminal, made from the code that it tells of."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import click
from click.shell_completion import CompletionItem

from msauto.cli.output import colour_on, give
from msauto.errors import MsautoError
from msauto.playbook.reference import templating
from msauto.playbook.reference.modules import ReferenceKey, ReferenceTopic, module, modules
from msauto.playbook.reference.pages import render_topic
from msauto.playbook.reference.templating import ReferenceEntry
from msauto.playbook.yaml.document import nearest
from msauto.report.json import dump

_LISTS: Mapping[str, tuple[str, Callable[[], Sequence[ReferenceEntry]]]] = {
    "facts": ("What templates may know of an asset: asset.NAME.", templating.facts),
    "variables": ("The names that templates are given.", templating.variables),
    "positions": ("How positions and durations may be written. Quote time codes.", templating.positions),
    "filters": ("Filters: VALUE | filter.", templating.filters),
    "tests": ("Tests, for when, where and that: VALUE is test.", templating.tests),
    "lookups": ("What templates may read from outside: lookup(NAME, ...).", templating.lookups),
}
_NOTE = """A template may stand for any value but those marked (no template). A key without a value is an error:
write "" to clear, or leave the key out. [] in a key means: of each item of the list."""


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    del ctx, param
    return [CompletionItem(name, help=words) for name, words in _all() if name.startswith(incomplete)]


@click.command("doc", short_help="The reference, in the terminal.")
@click.argument("topic", default="", metavar="[TOPIC]", shell_complete=_complete)
@click.option("--format", "form", type=click.Choice(["text", "json", "markdown"]), default="text", help="Form.")
@click.option("--no-color", is_flag=True, help="No colour, as NO_COLOR does.")
def command(*, topic: str, form: str, no_color: bool) -> None:
    """Tell all about a module (asset, rss, ...), play, task, facts or filters; without TOPIC, what topics there are."""
    if form == "json":
        give(dump(_as_json(topic)))
    elif form == "markdown":
        give(_as_markdown(topic))
    else:
        give("\n".join(_as_text(topic, _MarkdownStyle(colour_on(sys.stdout, no_color=no_color), _width()))))


def _all() -> list[tuple[str, str]]:
    return [*((each.name, each.words) for each in modules()), *((n, w) for n, (w, _) in _LISTS.items())]


def _find(name: str) -> ReferenceTopic | tuple[str, Sequence[ReferenceEntry]]:
    """Return a module's topic, or a list of entries with its words."""
    if name in _LISTS:
        words, entries = _LISTS[name]
        return words, entries()
    try:
        return module(name)
    except KeyError:
        raise MsautoError(f"there is no topic {name!r}", remedy=nearest(name, [each for each, _ in _all()])) from None


def _width() -> int:
    return min(shutil.get_terminal_size().columns, 110) if sys.stdout.isatty() else 110


# Text ----------------------------------------------------------------------------------------------------------


class _MarkdownStyle:
    """How text looks: bold heads where there is colour, lines no wider than the terminal."""

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


def _as_text(name: str, style: _MarkdownStyle) -> Iterator[str]:
    if not name:
        yield from _contents(style)
        return
    found = _find(name)
    if isinstance(found, ReferenceTopic):
        yield from _topic(found, style)
    else:
        yield from _entries(name, *found, style)


def _contents(style: _MarkdownStyle) -> Iterator[str]:
    yield style.head("Topics: msauto doc TOPIC")
    width = max(len(name) for name, _ in _all())
    for name, words in _all():
        yield f"  {name:<{width}}  {words}"


def _topic(topic: ReferenceTopic, style: _MarkdownStyle) -> Iterator[str]:
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


def _entries(name: str, words: str, entries: Sequence[ReferenceEntry], style: _MarkdownStyle) -> Iterator[str]:
    yield style.head(name)
    yield from style.wrap(words, 2)
    for entry in entries:
        yield ""
        yield f"  {style.head(entry.name)}"
        yield from style.wrap(entry.words, 6)
        if entry.example:
            yield f"      {entry.example}  →  {entry.result}"


# Other forms ---------------------------------------------------------------------------------------------------


def _as_json(name: str) -> Any:
    if not name:
        return [{"name": each, "words": words} for each, words in _all()]
    found = _find(name)
    if isinstance(found, ReferenceTopic):
        return asdict(found)
    return {"name": name, "words": found[0], "entries": [asdict(each) for each in found[1]]}


def _as_markdown(name: str) -> str:
    if not name:
        return "".join(f"- `{each}`: {words}\n" for each, words in _all())
    found = _find(name)
    if isinstance(found, ReferenceTopic):
        return render_topic(found)
    lines = (f"- `{each.name}`: {each.words}" + _sample(each) for each in found[1])
    return f"## {name}\n\n{found[0]}\n\n" + "".join(f"{line}\n" for line in lines)


def _sample(entry: ReferenceEntry) -> str:
    return f". ``{entry.example}`` gives ``{entry.result}``" if entry.example else ""
