"""XMP fields as a playbook declares them: only what a task can write again."""

from __future__ import annotations

import pytest

from msauto.aspects.xmp import XmpFields
from msauto.documents.writer import CommentedValue, FlowStyle
from msauto.model.live import Asset, AssetSnapshot
from msauto.model.server import Dialect


@pytest.mark.parametrize(
    ("values", "exported"),
    [
        (("sport",), "sport"),
        (("sport", "news"), FlowStyle(("sport", "news"))),
        (("",), None),
        (("", ""), FlowStyle(("", ""))),
    ],
)
def test_values_are_a_text_or_a_list(values: tuple[str, ...], exported: object) -> None:
    fields = (
        XmpFields()
        .export(AssetSnapshot("Film", Asset("Film"), {"dc:subject": values}), Dialect())
        .items
    )
    assert fields.get("dc:subject") == exported


def test_a_value_that_would_be_divided_is_left_out_with_the_reason() -> None:
    snapshot = AssetSnapshot("Film", Asset("Film"), {"dc:subject": ("sport, news",)})
    left_out = XmpFields().export(snapshot, Dialect()).items["dc:subject"]
    assert isinstance(left_out, CommentedValue)
    assert "which separates values" in left_out.notes[0]
