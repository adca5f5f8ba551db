"""No import cycle among the modules of ``msauto/``.

Every import statement counts: at module level, under ``TYPE_CHECKING`` and in a function. ``from package import name``
is an import of ``package.name`` if that is a module, else of ``package``. Two things do not count: the import of the
parent packages that Python adds to each import, and names passed to ``importlib``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from tests.lint.source import Finding, Source, package_sources

Graph = Mapping[str, Mapping[str, int]]
"""Each module → the modules that it imports → the line of the import."""


def check(sources: Sequence[Source]) -> Iterator[Finding]:
    modules = {source.module: source for source in package_sources(sources)}
    graph = {name: _imports(source, modules) for name, source in modules.items()}
    reported: set[frozenset[str]] = set()
    for module in sorted(graph):
        cycle = _shortest_cycle(graph, module)
        if cycle and frozenset(cycle) not in reported:
            reported.add(frozenset(cycle))
            message = f"import cycle: {' → '.join([*cycle, module])}"
            yield Finding(
                modules[module].path, graph[module][(*cycle, module)[1]], "import cycle", message
            )


def _imports(source: Source, modules: Mapping[str, Source]) -> dict[str, int]:
    found: dict[str, int] = {}
    for node in source.nodes:
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            origin = _origin(source, node)
            full = [f"{origin}.{alias.name}" for alias in node.names]
            names = [name if name in modules else origin for name in full]
        else:
            continue
        for name in names:
            if name in modules:
                found.setdefault(name, node.lineno)
    return found


def _origin(source: Source, node: ast.ImportFrom) -> str:
    """Return the absolute name of the module in ``from module import ...``."""
    if not node.level:
        return node.module or ""
    parts = source.module.split(".")
    package = parts[: len(parts) - node.level + source.path.endswith("/__init__.py")]
    return ".".join([*package, *([node.module] if node.module else [])])


def _shortest_cycle(graph: Graph, start: str) -> list[str]:
    """Return the modules of the shortest cycle through ``start``, beginning with it; empty if none exists."""
    paths = [[start]]
    seen: set[str] = set()
    for path in paths:  # grows while it is read: a breadth-first search
        for imported in graph[path[-1]]:
            if imported == start:
                return path
            if imported not in seen:
                seen.add(imported)
                paths.append([*path, imported])
    return []
