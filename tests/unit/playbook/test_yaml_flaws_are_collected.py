"""A key that is a duplicate, or not a text, hides no other problem: collect, then raise."""

from __future__ import annotations

from pathlib import Path

import pytest

from msauto.documents.loader import load_yaml
from msauto.errors import InputError, Problem
from msauto.playbook.inventory.hosts import ResolveOptions
from msauto.playbook.resolve import resolve
from msauto.playbook.validate import validate

INVENTORY = 'all: {hosts: {studio-a: {server: {url: "http://a"}, database: NEWS}}}\n'


def problems_of(tmp_path: Path, playbook: str, inventory: str = INVENTORY, **more: str) -> list[Problem]:
    """Return the problems that resolving reports; ``validate`` must report as many."""
    (tmp_path / "msauto.toml").write_text("")
    for name, text in {"playbook": playbook, "inventory": inventory, **more}.items():
        (tmp_path / f"{name}.yml").write_text(text)
    options = ResolveOptions((str(tmp_path / "playbook.yml"),), (str(tmp_path / "inventory.yml"),), env={})
    with pytest.raises(InputError) as caught:
        resolve(options)
    seen = validate([str(tmp_path / "playbook.yml")], ResolveOptions((), options.inventories, env={}))
    assert {problem.message for problem in caught.value.problems} <= {problem.message for problem in seen}
    return list(caught.value.problems)


def told(found: list[Problem]) -> list[str]:
    return [f"{Path(each.place.file).name}:{each.place.line}: {each.message}" for each in found if each.place]


def test_a_key_that_stands_twice_hides_no_other_error_of_its_file(tmp_path: Path) -> None:
    found = problems_of(
        tmp_path,
        "- hosts: all\n"
        "  tasks:\n"
        "    - name: One\n"
        "      name: Two\n"
        "      asset: {title: A, fields: {comment: '{{ nobody }}'}}\n"
        "    - asset: {titel: B}\n",
    )
    assert told(found) == [
        "playbook.yml:4: duplicate key 'name' (first in line 3)",
        "playbook.yml:5: undefined variable 'nobody'",
        "playbook.yml:6: unknown key 'titel'",
    ]
    assert found[0].remedy == "keep one of them"


def test_nor_those_of_other_files(tmp_path: Path) -> None:
    found = problems_of(
        tmp_path,
        "- hosts: all\n  vars_files: [shows.yml]\n"
        "  tasks:\n    - asset: {title: '{{ show }}', folder: '{{ nowhere }}'}\n",
        "all:\n  vars: {a: 1}\n  vars: {a: 2}\n  hosts: {studio-a: {server: {url: 'http://a'}, database: NEWS}}\n",
        shows="show: One\nshow: Two\n",
    )
    assert told(found) == [
        "inventory.yml:3: duplicate key 'vars' (first in line 2)",
        "playbook.yml:4: undefined variable 'nowhere'",
        "shows.yml:2: duplicate key 'show' (first in line 1)",
    ]


def test_a_template_without_quotes_is_one_error_and_hides_none(tmp_path: Path) -> None:
    found = problems_of(
        tmp_path,
        "- hosts: all\n"
        "  tasks:\n"
        "    - asset: {title: {{ episode }}, folder: News}\n"
        "    - asset: {title: A, fields: {comment: '{{ nobody }}'}}\n",
    )
    assert told(found) == ["playbook.yml:3: a template must be quoted", "playbook.yml:4: undefined variable 'nobody'"]


def test_an_inventory_with_such_a_key_tells_the_rest_too(tmp_path: Path) -> None:
    found = problems_of(
        tmp_path,
        "- hosts: all\n  tasks: [{asset: {titel: A}}]\n",
        "all:\n  vars: {house: {{ house }}}\n  hosts:\n    studio-a: {server: {url: 'http://a', versoin: '2.9'}}\n"
        "  childern: {}\n",
    )
    assert "inventory.yml:2: a template must be quoted" in told(found)
    assert "inventory.yml:5: unknown key 'childern'" in told(found)
    assert "playbook.yml:2: unknown key 'titel'" in told(found)


@pytest.mark.parametrize(
    "text",
    [
        "server: {auth: {bearer: hunter1}}\nserver: {auth: {bearer: hunter2}}\n",
        "a: 1\na: {password: hunter2}\n",
        "1: {password: hunter2}\n",
        "auth: {1: hunter2}\n",
        "auth: {[a]: hunter2}\n",
    ],
)
def test_what_stands_under_such_a_key_is_hidden_as_anywhere(text: str) -> None:
    with pytest.raises(InputError) as caught:
        load_yaml(text.encode(), "f")
    assert "hunter" not in str(caught.value)
