"""No template takes long or much memory: it is an error of steps or sizes, the same on every machine."""

from __future__ import annotations

from typing import Any

import pytest

from msauto.documents.document import Document, SourceNode
from msauto.errors import InputError
from msauto.playbook.templates.environment import render_text
from msauto.playbook.templates.names import SecretTracker

NESTED = "{% set ns = namespace(x=['x']) %}{% for i in range(12) %}{% set ns.x = [ns.x] * 10 %}{% endfor %}"
BOMBS = [
    "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
    "{% for a in range(100000) %}{% set x = 'a' * 1000000 %}{% endfor %}",
    "{% for a in range(100000) %}{% set x = ('a' * 1000000) | upper %}{% endfor %}",
    "{{ '{0}' * 300000 }}{{ ('{0}' * 300000).format('x' * 900000) | length }}",
    "{{ (('%s' * 100) % ((('x' * 900000,) * 100))) | length }}",
    "{{ ('a' * 900000).translate({97: 'x' * 900000}) | length }}",
    "{{ ([[0] * 1000000] * 10000) | sum(start=[]) | length }}",
    "{{ ([[0] * 1000000] * 10000) | flatten | length }}",
    "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(40) }}",
    "{% set ns = namespace(x='a') %}{% for i in range(100000) %}{% set ns.x = ns.x ~ 'aaaaaaaaa' %}{% endfor %}",
    "{{ range(100000) | map('string') | map('replace', '', 'x' * 900000) | list | length }}",
    "{% for a in range(100000) %}{{ range(100000) | list | length }}{% endfor %}",
    f"{NESTED}{{{{ ns.x | to_json | length }}}}",
    f"{NESTED}{{{{ ns.x }}}}",
    f"{NESTED}{{{{ ns.x ~ 'a' }}}}",
]


class NoNames(dict[str, Any]):
    tracker = SecretTracker()

    def known(self) -> list[str]:
        return []


def render(template: str) -> Any:
    return render_text(template, NoNames(), SourceNode(Document("play.yml")))


@pytest.mark.parametrize("template", BOMBS)
def test_what_grows_without_end_is_an_error(template: str) -> None:
    with pytest.raises(InputError, match=r"a template may (take|make) at most"):
        render(template)


def test_usual_work_is_done() -> None:
    rows = "{% set rows = range(20000) | map('string') | list %}"
    assert (
        render(rows + "{% for row in rows %}{% if row in ['7', '8'] %}{{ row | upper }}{% endif %}{% endfor %}") == "78"
    )
    assert (
        render("{{ range(50000) | map('string') | map('replace', '1', '2') | select('search', '7') | list | length }}")
        > 1
    )
    assert render("{% for a in 'abc' %}{{ loop.index }}/{{ loop.length }}{{ ',' if not loop.last }}{% endfor %}") == (
        "1/3,2/3,3/3"
    )
    assert render("{% for a in [1, [2, 3]] recursive %}{{ a if a is number else loop(a) }}{% endfor %}") == "123"
