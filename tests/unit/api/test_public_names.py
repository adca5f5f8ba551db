"""The public names of msauto and their signatures are frozen; a change of one is a line in the changelog."""

from __future__ import annotations

import hashlib
import inspect
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import msauto

NAMES = Path(__file__).with_name("public_names.txt")
CHANGELOG = Path(__file__).parents[3] / "CHANGELOG.md"
_HOW = "MSAUTO_WRITE_CASES=1 writes the list again; the changelog must name what changed, and the new digest"


OPAQUE = {"Loaded", "Plan", "Result"}
"""What functions return and take: how such a value is made is not public, and neither are its fields."""


def public_names() -> Iterator[str]:
    """Yield each public name with its parameters, and the attributes of classes below it."""
    for name in sorted(msauto.__all__):
        value = getattr(msauto, name)
        if inspect.isclass(value):
            yield f"class {name}{'' if name in OPAQUE else _parameters(value)}"
            yield from (f"    {each}" for each in _attributes(value, opaque=name in OPAQUE))
        else:
            yield f"{name}{_parameters(value)}" if callable(value) else name


def _parameters(value: Callable[..., object]) -> str:
    """Return the parameters with their defaults, without types: mypy checks those."""
    signature = inspect.signature(value)
    shown = [
        each.replace(
            annotation=each.empty, default=each.default if _is_literal(each.default) else ...
        )
        for each in signature.parameters.values()
        if each.name != "self"
    ]
    return str(
        signature.replace(parameters=shown, return_annotation=inspect.Signature.empty)
    ).replace("Ellipsis", "...")


def _is_literal(default: object) -> bool:
    return default in (None, inspect.Parameter.empty, ()) or isinstance(
        default, bool | int | float | str
    )


def _attributes(kind: type, *, opaque: bool) -> Iterator[str]:
    annotated = {} if opaque else getattr(kind, "__annotations__", {})
    for name in sorted({*dir(kind), *annotated} - {*dir(Exception)}):
        value = inspect.getattr_static(kind, name, None)
        is_slot = inspect.ismemberdescriptor(value)
        if not name.startswith("_") and not (opaque and is_slot):
            yield f"{name}{_parameters(value)}" if inspect.isfunction(value) else name


def test_public_names_and_signatures_are_those_of_the_list() -> None:
    text = "".join(f"{line}\n" for line in public_names())
    if os.environ.get("MSAUTO_WRITE_CASES"):
        NAMES.write_text(text, encoding="utf-8")
    assert NAMES.read_text(encoding="utf-8") == text, _HOW


def test_a_changed_list_is_a_changed_line_of_the_changelog() -> None:
    digest = hashlib.sha256(NAMES.read_bytes()).hexdigest()[:8]
    assert f"(digest `{digest}`)" in CHANGELOG.read_text(encoding="utf-8"), _HOW


def test_the_changelog_names_each_function() -> None:
    named = set(re.findall(r"`msauto\.(\w+)`", CHANGELOG.read_text(encoding="utf-8")))
    assert {name for name in msauto.__all__ if inspect.isfunction(getattr(msauto, name))} <= named


def test_the_names_are_documented() -> None:
    undocumented = [name for name in msauto.__all__ if not inspect.getdoc(getattr(msauto, name))]
    assert undocumented == []
