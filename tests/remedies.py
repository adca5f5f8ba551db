"""The remedies of msauto: those that its source names, and those that a test follows (``tests/cases/remedies``)."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from tests.tables import CASES, load

ROOT = Path(__file__).parents[1] / "msauto"
FOLDER = CASES / "remedies"
NOT_FOLLOWED = FOLDER / "not_followed.yml"
ANYTHING = "…"
"""Stands for a part of a remedy that its place in the source does not show."""


@dataclass(frozen=True)
class Followed:
    """A case: what is wrong, the remedy that it gets, and the ways to follow it."""

    file: str
    about: str
    world: dict[str, Any]
    remedy: str
    ways: list[dict[str, Any]]


def followed() -> Iterator[Followed]:
    """Yield the cases of the runner ``tests/cli/test_remedies.py``."""
    for path in sorted(FOLDER.glob("*.yml")):
        if path == NOT_FOLLOWED:
            continue
        for number, row in enumerate(load(path), 1):
            world = dict(row)
            remedy, then = world.pop("remedy"), world.pop("then")
            about = world.pop("about", number)
            ways = then if isinstance(then, list) else [then]
            yield Followed(path.stem, str(about), world, remedy, ways)


@cache
def remedies_with_a_case() -> frozenset[str]:
    """Return the remedies that a test follows, here and beside the readers of files and repositories."""
    found = {case.remedy for case in followed()}
    for folder in ("timelines", "server"):
        found |= {row["remedy"] for row in load(CASES / folder / "remedies.yml")}
    for path in (CASES / "repositories").glob("*.yml"):
        for case in load(path):
            if "then" in case:
                problems = [*case.get("wrong", ()), *case.get("refused", ())]
                found |= {problem.partition("\n  → ")[2] for problem in problems}
    return frozenset(found)


@dataclass
class Source:
    """The modules of msauto as syntax trees, and what is known of their names."""

    trees: dict[str, ast.Module] = field(default_factory=dict)
    nodes: dict[str, list[ast.AST]] = field(default_factory=dict)
    constants: dict[str, ast.expr] = field(default_factory=dict)
    positions: dict[str, dict[str, int | None]] = field(default_factory=lambda: defaultdict(dict))

    def __post_init__(self) -> None:
        for path in sorted(ROOT.rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            self.trees[name] = ast.parse(path.read_text(encoding="utf-8"))
            self.nodes[name] = [*ast.walk(self.trees[name])]
            self._learn(name)

    def _learn(self, module: str) -> None:
        for node in self.nodes[module]:
            match node:
                case ast.Assign(targets=[target, *_], value=value):
                    self._learn_constant(target, value)
                case ast.AnnAssign(target=target, value=ast.expr() as value):
                    self._learn_constant(target, value)
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    self._learn_position(module, node.name, _parameters(node))
                case ast.ClassDef():
                    self._learn_class(module, node)

    def _learn_constant(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name) and target.id.isupper():
            self.constants[target.id] = value

    def _learn_class(self, module: str, node: ast.ClassDef) -> None:
        fields = []
        for part in node.body:
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                fields.append(part.target.id)
            elif isinstance(part, ast.FunctionDef) and part.name == "__init__":
                fields = _parameters(part)
        self._learn_position(module, node.name, fields)

    def _learn_position(self, module: str, name: str, parameters: list[str]) -> None:
        if parameters and parameters[0] in ("self", "cls"):
            parameters = parameters[1:]
        self.positions[name].setdefault(module, None)
        for parameter in ("remedy", "otherwise"):
            if parameter in parameters:
                self.positions[name][module] = parameters.index(parameter)

    def position_of(self, module: str, name: str) -> int | None:
        """Return where a function takes its remedy: as its own module has it, else as most do."""
        found = self.positions.get(name, {})
        if module in found:
            return found[module]
        return next((place for place in found.values() if place is not None), None)


@cache
def remedies_of_source() -> dict[str, list[str]]:
    """Return each text that msauto gives as a remedy, with the places that do."""
    source = Source()
    found = defaultdict(list)
    for module, nodes in source.nodes.items():
        for node in nodes:
            for value in _values(source, module, node):
                for text in _texts(source, value):
                    if re.search("[a-z]{3}", text):
                        found[text].append(f"{module}:{value.lineno}")
    return dict(found)


def _values(source: Source, module: str, node: ast.AST) -> Iterator[ast.expr]:
    """Yield what a node gives as a remedy."""
    if isinstance(node, ast.keyword) and node.arg in ("remedy", "otherwise"):
        yield node.value
    elif isinstance(node, ast.Call):
        position = source.position_of(module, _name(node.func))
        if position is not None and position < len(node.args):
            yield node.args[position]
    elif isinstance(node, ast.Assign):
        yield from _assigned(source, module, node)
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and "remedy" in node.name:
        for part in ast.walk(node):
            if isinstance(part, ast.Return) and part.value is not None:
                yield part.value


def _assigned(source: Source, module: str, node: ast.Assign) -> Iterator[ast.expr]:
    target = node.targets[0]
    if "remedy" in _name(target) or "advice" in _name(target):
        yield node.value
    if not isinstance(target, ast.Tuple):
        return
    names = [_name(each) for each in target.elts]
    if "remedy" not in names:
        return
    place = names.index("remedy")
    if isinstance(node.value, ast.Tuple):
        yield node.value.elts[place]
    elif isinstance(node.value, ast.Call):
        yield from _returned(source.trees[module], _name(node.value.func), place)


def _returned(tree: ast.Module, function: str, place: int) -> Iterator[ast.expr]:
    """Yield what the tuples that a function of a module returns have in one place."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == function:
            for part in ast.walk(node):
                if isinstance(part, ast.Return) and isinstance(part.value, ast.Tuple):
                    yield part.value.elts[place]


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    return [parameter.arg for parameter in function.args.args]


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def _texts(source: Source, node: ast.expr) -> list[str]:
    """Return the texts that an expression can be, with a sign for what is not seen here."""
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.JoinedStr(values=parts):
            return ["".join(each) for each in product(*(_texts(source, one) for one in parts))]
        case ast.FormattedValue(value=ast.Name(id=name)) if name in source.constants:
            return _texts(source, source.constants[name])
        case ast.IfExp(body=body, orelse=other):
            return _texts(source, body) + _texts(source, other)
        case ast.BoolOp(values=values):
            return [text for value in values for text in _texts(source, value)]
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            both = product(_texts(source, left), _texts(source, right))
            return ["".join(each) for each in both]
        case ast.Name(id=name) if name in source.constants:
            return _texts(source, source.constants[name])
    return [ANYTHING]


def pattern_of(text: str) -> re.Pattern[str]:
    """Return what a remedy of this text looks like when it is printed."""
    parts = [re.escape(part) for part in text.split(ANYTHING)]
    return re.compile("(did you mean .*[?] (Else )?)?" + ".+".join(parts))
