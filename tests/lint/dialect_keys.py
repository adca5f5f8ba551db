"""One module reads each key of the dialect.

A question that several modules have is answered by a method of the class ``Dialect``. Where a key is only shown in an
f-string does not count, and the simulator has a dialect of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tests.lint.source import Finding, Source, package_sources

CLASS = "Dialect"
"""The class of the dialect, in whatever module it is."""
ATTRIBUTE = "dialect"
"""What a variable or an attribute that holds one is called."""
EXCLUDED = "msauto/plugins/simulator"
SHARED = {
    "list_separator": "a text used to join, split and show lists",
    "rss_guid": "passed to what writes playbooks",
}
"""Keys that several modules read, and why."""


def check(sources: Sequence[Source]) -> Iterator[Finding]:
    for key, places in places_of_keys(sources).items():
        if len(places) != 1 and key not in SHARED:
            found = ", ".join(sorted(places)) or "no module"
            message = f"dialect key {key} is read in {found} → read it in one module, or add a method to {CLASS}"
            yield Finding(min(places, default=_home(sources)[0].path), 1, "dialect key", message)


def places_of_keys(sources: Sequence[Source]) -> dict[str, set[str]]:
    """Return the paths of the modules that read each key of the dialect."""
    home, dialect = _home(sources)
    fields = [node.target for node in dialect.body if isinstance(node, ast.AnnAssign)]
    places: dict[str, set[str]] = {
        field.id: set() for field in fields if isinstance(field, ast.Name)
    }
    for key in _attributes(dialect, "self"):
        places.get(key, set()).add(home.path)
    for source in _candidates(sources):
        for key in _attributes(source.tree, ATTRIBUTE):
            places.get(key, set()).add(source.path)
    return places


def _candidates(sources: Sequence[Source]) -> list[Source]:
    return [source for source in package_sources(sources) if not source.is_in(EXCLUDED)]


def _home(sources: Sequence[Source]) -> tuple[Source, ast.ClassDef]:
    for source in _candidates(sources):
        for node in source.tree.body:
            if isinstance(node, ast.ClassDef) and node.name == CLASS:
                return source, node
    raise LookupError(
        f"class {CLASS} not found → set CLASS in tests/lint/dialect_keys.py to its new name"
    )


def _attributes(tree: ast.AST, owner: str) -> Iterator[str]:
    """Yield the attributes that are read of ``owner``, or of an attribute of that name."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.JoinedStr):
            continue
        if isinstance(node, ast.Attribute):
            value = node.value
            if owner in {getattr(value, "id", None), getattr(value, "attr", None)}:
                yield node.attr
        yield from _attributes(node, owner)
