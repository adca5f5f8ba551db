"""The dialect's switches as values; that each is looked at is shown where its subject is tested."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

from msauto.simulator import SimDialect


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("segment_update=explode", "refuse, overwrite, duplicate, ignore"),
        ("no_such=1", "segment_update"),
        ("segment_update", "key=value"),
        ("line_limit=many", "bytes"),
        ("list_separator=", "empty"),
    ],
)
def test_a_wrong_switch_names_the_choices(text: str, names: str) -> None:
    with pytest.raises(ValueError, match=re.escape(names)):
        SimDialect.parse([text])


def test_every_switch_is_described() -> None:
    assert [entry.name for entry in fields(SimDialect) if not entry.metadata["description"]] == []
