"""The reference as Markdown: the pages of ``docs/reference`` and what ``msauto doc`` shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msauto.playbook.reference.entries import ReferenceEntry, ReferenceTopic
from msauto.playbook.reference.modules import modules
from msauto.playbook.reference.templating import facts, filters, lookups, questions, variables
from msauto.playbook.templates.filters import REMOVED

_MADE = "<!-- Made from the code by `python -m tests.docs.make_reference`: change the code, not this page. -->\n\n"


def render_page(name: str) -> str:
    """Return a page of the reference as Markdown; raises ``KeyError`` for a name not in :data:`PAGES`."""
    return PAGES[name]()


def render_topic(topic: ReferenceTopic) -> str:
    """Return a module, a play or a task: what it is for, its keys, its examples."""
    rows = [
        (f"`{key.path}`", key.kind + (", needed" if key.needed else ""), key.words + ("" if key.template else _NO))
        for key in topic.keys
    ]
    examples = "".join(f"\n```yaml\n{each}```\n" for each in topic.examples)
    return f"## {topic.name}\n\n{topic.words}\n\n{_table(('key', 'value', 'means'), rows)}{examples}"


_NO = " (no template)"
_LOOKUPS = """
## Lookups

Files are looked for beside the playbook, and inside its repository (the nearest folder above with `.git` or
`msauto.toml`; without one, see [security](../security.md)); `[lookup] folders` in `msauto.toml` opens others.
`query` (or `q`) is a lookup that always gives a list.

"""


def _modules() -> str:
    intro = (
        "# Plays, tasks and modules: every key\n\n"
        "A template may stand for any value but those marked (no template). A key without a value is an error: write\n"
        '`""` to clear, or leave the key out. `[]` in a key means: of each item of the list.\n\n'
    )
    return _MADE + intro + "\n".join(render_topic(topic) for topic in modules())


def _filters() -> str:
    intro = (
        "# Filters, tests, lookups: every one\n\n"
        "As in Ansible and Jinja, and this field's own for time codes. All are deterministic: a plan comes out the\n"
        "same twice. `words` is `[news, evening]`, `shows` a list of mappings with `title` and `kind`.\n\n"
    )
    gone = [(f"`{name}`", why) for name, why in sorted(REMOVED.items())]
    return (
        _MADE
        + intro
        + "## Filters\n\n"
        + _entries(filters())
        + '\n## Tests\n\nFor `when`, `where`, `that` and `if`: `asset.title is match("EP")`.\n\n'
        + _entries(questions())
        + _LOOKUPS
        + _entries(lookups())
        + "\n## Not there, on purpose\n\n"
        + _table(("filter", "why"), gone)
    )


def _facts() -> str:
    intro = (
        "# Facts and given names\n\n"
        "What templates may know. A fact is read from the server only where a template looks at it.\n\n"
        "## Facts of the asset\n\n"
        "Any further attribute that the server reports is there as well: `asset.NAME`, or `asset['NAME']`. One that\n"
        "it does not report is an error, unless `| default(...)` or `is defined` asks for it.\n\n"
    )
    names = "\n## Given names\n\nBeside the variables of the playbook, and `item` in a loop:\n\n"
    return _MADE + intro + _entries(facts(), "fact") + names + _entries(variables(), "name")


def _entries(entries: Iterable[ReferenceEntry], head: str = "name") -> str:
    rows = [(f"`{each.name}`", each.words, _code(each.example), _code(each.result)) for each in entries]
    return _table((head, "means", "example", "gives"), rows)


def _code(text: str) -> str:
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


PAGES: Mapping[str, Callable[[], str]] = {"modules": _modules, "filters": _filters, "facts": _facts}
"""The pages by name, each ``docs/reference/NAME.md``."""
