"""The reference as Markdown, for ``docs/reference`` and ``msauto doc``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msauto.playbook.reference.module_docs import ReferenceTopic, modules
from msauto.playbook.reference.template_docs import ReferenceEntry, facts, filters, lookups, tests, variables
from msauto.playbook.templates.filters import REMOVED

_MADE = "<!-- Made from the code by `python -m tests.docs.make_reference`: change the code, not this page. -->\n\n"


def render_topic(topic: ReferenceTopic) -> str:
    """Return a module, a play or a task as Markdown."""
    rows = [
        (f"`{key.path}`", key.kind + (", needed" if key.needed else ""), key.words + ("" if key.template else _NO))
        for key in topic.keys
    ]
    examples = "".join(f"\n```yaml\n{each}```\n" for each in topic.examples)
    return f"## {topic.name}\n\n{topic.words}\n\n{_table(('key', 'value', 'means'), rows)}{examples}"


_NO = " (no template)"
_LOOKUPS = """
## Lookups

Files are searched for beside the playbook, inside its repository (the nearest folder above with `.git` or
`msauto.toml`; without one, see [security](../security.md)); `[lookup] folders` in `msauto.toml` opens others.
`query` (or `q`) is a lookup that always returns a list.

"""


def _modules() -> str:
    intro = (
        "# Plays, tasks and modules: every key\n\n"
        "Every value may be a template, except those marked (no template). A key without a value is an error: write\n"
        '`""` to clear, or omit the key. `[]` in a key means: of each item of the list.\n\n'
    )
    return _MADE + intro + "\n".join(render_topic(topic) for topic in modules())


def _filters() -> str:
    intro = (
        "# Filters, tests, lookups: every one\n\n"
        "As in Ansible and Jinja, and more for time codes. All are deterministic: the same playbook gives the same\n"
        "plan. `words` is `[news, evening]`, `shows` a list of mappings with `title` and `kind`.\n\n"
    )
    gone = [(f"`{name}`", why) for name, why in sorted(REMOVED.items())]
    return (
        _MADE
        + intro
        + "## Filters\n\n"
        + _entries(filters())
        + '\n## Tests\n\nFor `when`, `where`, `that` and `if`: `asset.title is match("EP")`.\n\n'
        + _entries(tests())
        + _LOOKUPS
        + _entries(lookups())
        + "\n## Removed on purpose\n\n"
        + _table(("filter", "why"), gone)
    )


def _facts() -> str:
    intro = (
        "# Facts and given names\n\n"
        "The names that templates can use. A fact is read from the server only if a template uses it.\n\n"
        "## Facts of the asset\n\n"
        "Any other attribute that the server reports is available as well: `asset.NAME`, or `asset['NAME']`. One that\n"
        "it does not report is an error, except with `| default(...)` or `is defined`.\n\n"
    )
    names = "\n## Given names\n\nIn addition to the variables of the playbook, and `item` in a loop:\n\n"
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
