"""Attributes of links, markers and segments are listed in ``model/fields.py`` and nowhere else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from msauto.aspects.link import LinkArgs
from msauto.aspects.link_fields import FieldsArgs
from msauto.aspects.marker import MarkerArgs
from msauto.aspects.segment_arguments import SegmentArgs
from msauto.documents.strict_model import Model
from msauto.model.fields import LINK_FIELDS, MARKER_ATTRIBUTES, SEGMENT_ATTRIBUTES, Attribute, names

ROOT = Path(__file__).parents[3] / "msauto"
NAMES = {*names(LINK_FIELDS), *names(MARKER_ATTRIBUTES), *names(SEGMENT_ATTRIBUTES)}
OWN_LISTS = ("plugins/simulator/embedded", "model/fields.py")
"""The simulator imports nothing of ours, so that it cannot share our mistakes."""


def lists(path: Path) -> Iterator[tuple[int, set[str]]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            found = {
                each.value
                for each in node.elts
                if isinstance(each, ast.Constant) and isinstance(each.value, str)
            }
            if len(found & NAMES) > 2:
                yield node.lineno, found


@pytest.mark.scale
def test_no_other_module_lists_attributes() -> None:
    modules = [
        path
        for path in ROOT.rglob("*.py")
        if not path.relative_to(ROOT).as_posix().startswith(OWN_LISTS)
    ]
    assert [(path.name, *found) for path in modules for found in lists(path)] == []


@pytest.mark.parametrize(
    ("model", "attributes"),
    [
        (FieldsArgs, LINK_FIELDS),
        (LinkArgs, LINK_FIELDS),
        (MarkerArgs, MARKER_ATTRIBUTES),
        (SegmentArgs, SEGMENT_ATTRIBUTES),
    ],
)
def test_models_have_the_attributes_of_the_registry(
    model: type[Model], attributes: tuple[Attribute, ...]
) -> None:
    keys = list(model.model_fields)
    start = keys.index(names(attributes)[0])
    assert tuple(keys[start : start + len(attributes)]) == names(attributes)
