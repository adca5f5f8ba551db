"""YAML 1.2 reads what JSON writes: playbooks and inventories may come from a program."""

from __future__ import annotations

import json

import pytest

from msauto.documents.loader import load_yaml


@pytest.mark.parametrize("text", ["\U0001f600 news", "\U0001f468\u200d\U0001f469", "ё\U00010000", "\\ud83d\\ude00"])
def test_text_that_json_escapes(text: str) -> None:
    for ensure_ascii in (True, False):
        written = json.dumps({"title": text, text: 1}, ensure_ascii=ensure_ascii).encode()
        assert load_yaml(written, "p.json").data == {"title": text, text: 1}


def test_half_a_pair_stays_half_a_pair() -> None:
    assert load_yaml(b'{"title": "\\ud83d news"}', "p.json").data == {"title": "\ud83d news"}
