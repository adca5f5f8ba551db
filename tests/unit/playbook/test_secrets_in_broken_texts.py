"""No excerpt of a text that cannot be read shows a secret, whatever its name and however it is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from msauto.cli.commands.vars import report_variables
from msauto.documents.document import Document
from msauto.documents.loader import load_yaml
from msauto.errors import InputError, SourceLocation
from msauto.playbook.inventory.hosts import ResolveOptions
from msauto.playbook.settings import load_settings
from msauto.secrets.redaction import SECRET_WORDS, is_secret_name, redact_lines

NAMES = [
    spelt
    for word in SECRET_WORDS
    for spelt in (word, word.upper(), word.replace("_", "-"), f"studio_{word}", f"{word}s", f"{word}_2")
]
WAYS = [
    "{name}: hunter2",
    "a:\n  b:\n    - {name}: hunter2",
    "a: {{b: {{{name}: hunter2, c: d",
    'a: {{"b": {{"{name}":"hunter2", "c": "d"',
    "{name}: |\n  hunter2\n  x: hunter2\n\n  - hunter2",
    "- {name}: >-\n    hunter2\n    x: hunter2",
    "{name}:\n  hunter2",
    "{name}:\n- hunter2\n- x: hunter2",
    "{name}:  # these\n- hunter2",
    '{name}: "hunter1\nx: hunter2\n hunter2"',
    "{name}: 'hunter1 ''\nx: hunter2'",
    '{name}: &here !x "hunter1\nx: hunter2"',
    "{name}: [hunter1,\n  x: hunter2,\n hunter2]",
    "{name}: hunter1\nhunter2",
    "? {name}\n: hunter2",
    "{name}: !hunter2 x",
    "{name}: *hunter2",
    '{name} = "hunter2"',
]


def excerpts(text: str) -> str:
    """All that could be shown of a text: the excerpt of each of its lines."""
    document = Document("f", lines=redact_lines(tuple(text.split("\n"))))
    return "\n".join(document.excerpt(SourceLocation("f", number + 1, 1)) for number in range(len(document.lines)))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", NAMES)
def test_no_line_shows_it(name: str, way: str) -> None:
    text = way.format(name=name)
    assert is_secret_name(name)
    assert "hunter" not in excerpts(text)
    with pytest.raises(InputError) as caught:
        load_yaml(f"{text}\nz: [\n@".encode(), "f.yml")
    assert "hunter" not in "".join(f"{each}{each.excerpt}" for each in caught.value.problems)


def test_what_stands_around_it_is_shown() -> None:
    text = "a: 1\npassword: hunter2\nb: 2\nbypass: 3\npassword_file: p.txt\n- token: hunter2\n  c: 4\n  at: http://u:hunter2@h/"
    shown = excerpts(text)
    assert "hunter2" not in shown
    for part in ("a: 1", "password: ***", "b: 2", "bypass: 3", "password_file: p.txt", "- token: ***", "c: 4", "@h/"):
        assert part in shown


def test_settings_that_are_no_toml(tmp_path: Path) -> None:
    file = tmp_path / "msauto.toml"
    file.write_text('[state]\nurl = "postgresql://ops:hunter2@db/x" oops\n', encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_settings(file)
    assert "hunter2" not in "".join(f"{each}{each.excerpt}" for each in caught.value.problems)


def test_a_password_in_a_url_of_valid_settings(tmp_path: Path) -> None:
    file = tmp_path / "msauto.toml"
    file.write_text('[state]\nurl_ = "postgresql://ops:hunter2@db/x"\n', encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_settings(file)
    assert "hunter2" not in "".join(f"{each}{each.excerpt}" for each in caught.value.problems)


@pytest.mark.parametrize("name", [each for each in NAMES if each.isidentifier()])
def test_variables_of_these_names_are_not_told(tmp_path: Path, name: str) -> None:
    inventory = tmp_path / "inventory.yml"
    inventory.write_text(f"all: {{hosts: {{a: {{{name}: hunter2, x: {{{name}: hunter2}}}}}}}}\n", encoding="utf-8")
    told = report_variables(ResolveOptions(playbooks=(), inventories=(str(inventory),)), "a", None)
    assert "hunter2" not in repr(told)
