"""``<<`` merges only where it is plain: not quoted, without a tag, and once in a mapping."""

from __future__ import annotations

import pytest

from msauto.documents.document import Document
from msauto.documents.loader import MAX_DEPTH, parse_yaml
from msauto.errors import InputError
from msauto.secrets.redaction import HIDDEN


def messages(text: str) -> list[str]:
    return [flaw.message for flaw in parse_yaml(text.encode(), "f.yml").flaws]


def excerpts(document: Document) -> str:
    return "".join(flaw.excerpt for flaw in document.flaws)


@pytest.mark.parametrize("key", ["! <<", "!!str <<", '"<<"'])
def test_a_key_with_a_tag_or_quotes_does_not_merge(key: str) -> None:
    document = parse_yaml(f"{key}: {{token: q}}\n".encode(), "f.yml")
    assert (document.data, document.flaws) == ({"<<": {"token": "q"}}, ())


@pytest.mark.parametrize("text", ['"<<": 1\n<<: {a: 1}\n', '<<: {a: 1}\n"<<": 1\n', "<<: {a: 1}\n<<: {b: 1}\n"])
def test_both_forms_in_one_mapping_are_duplicates(text: str) -> None:
    assert messages(text) == ["duplicate key '<<' (first in line 1)"]


@pytest.mark.parametrize("value", ["!secret hunter2222", "[!secret hunter2222]", "[{a: 1}, !secret hunter2222]"])
def test_a_secret_that_cannot_be_merged_is_not_shown(value: str) -> None:
    document = parse_yaml(f"a: 1\n<<: {value}\n".encode(), "f.yml")
    assert "<< merges only mappings" in messages(f"<<: {value}\n")
    assert HIDDEN in excerpts(document)
    assert "hunter2222" not in excerpts(document)


def test_a_long_chain_of_merges_is_named_for_what_it_is() -> None:
    lines = ["a0: &a0 {x: 1}", *(f"a{n}: &a{n} {{<<: *a{n - 1}, y{n}: 1}}" for n in range(1, MAX_DEPTH + 2))]
    with pytest.raises(InputError, match=f"aliases nest deeper than {MAX_DEPTH} levels"):
        parse_yaml("\n".join(lines).encode(), "f.yml")
