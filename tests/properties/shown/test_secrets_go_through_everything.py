"""Whatever a template does with a secret, what comes out is marked; through every filter, test and chain of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msauto.documents.document import Document, SourceNode, given_document
from msauto.errors import InputError
from msauto.model.server import Secret
from msauto.playbook.input_files import Files, LookupContext
from msauto.playbook.templates.environment import render_text
from msauto.playbook.templates.sandbox import Sandbox
from msauto.playbook.variables import Level, TemplateScope, Variables, read_variables
from msauto.secrets.sources import holds_secret

TOKEN = "geheimnis7Zq4"
SPOT = SourceNode(Document("vars.yml"))
FILTERS = sorted(name for name in Sandbox().filters if name.isidentifier())
TESTS = sorted(Sandbox().tests)
SEEDS = (
    "token",
    "creds.token",
    "[token, 'b']",
    "{'a': token}",
    "nested",
    "creds",
    "listed",
    "token[1:]",
    "('x' ~ token)",
)
ROWS = [SEEDS[0], *(pytest.param(seed, marks=pytest.mark.scale) for seed in SEEDS[1:])]
CHAINED = st.lists(st.sampled_from(list(FILTERS)), min_size=1, max_size=4)


def scope() -> TemplateScope:
    files = Files()
    variables: dict[str, Any] = {
        "token": Secret(TOKEN),
        "creds": {"user": "ops", "token": Secret(TOKEN)},
        "nested": "x {{ token }}",
        "listed": [Secret(TOKEN), "plain"],
    }
    data = given_document(variables, "vars").data
    files.tracker.add_tagged(data)
    around = LookupContext({}, files, Path(), Path())
    return TemplateScope(Variables(read_variables(data, Level.PLAY, SPOT)), {}, around)


def check(template: str) -> None:
    names = scope()
    tracker = names.tracker
    value, told = None, ""
    try:
        value = render_text(template, names, SPOT)
    except InputError as error:
        told = str(error)
    assert TOKEN not in told, template
    assert TOKEN.upper() not in told, template
    assert told or holds_secret(value) or tracker.lost or value in ([], {}), (template, value)


@pytest.mark.parametrize("seed", ROWS)
def test_through_every_filter(seed: str) -> None:
    for name in FILTERS:
        check(f"{{{{ {seed} | {name} }}}}")
        check(f"{{{{ {seed} | {name}('a') }}}}")
        check(f"{{{{ {seed} | {name} | string }}}}")
        check(f"x{{{{ {seed} | {name} }}}}")
        check(f"{{{{ 'a b c' | {name}({seed}) }}}}")


@pytest.mark.parametrize("seed", ROWS)
def test_through_every_test(seed: str) -> None:
    for name in TESTS:
        check(f"{{{{ 'a long text' if {seed} is {name} else 'another text' }}}}")
        check(f"{{{{ 'a long text' if {seed} is {name}('a') else 'another text' }}}}")
        check(f"{{% if {seed} is not {name} %}}a long text{{% else %}}another text{{% endif %}}")


@given(st.sampled_from(SEEDS), CHAINED, st.booleans())
def test_through_chains(seed: str, chain: list[str], alone: bool) -> None:
    check(f"{'' if alone else 'x '}{{{{ {seed} | {' | '.join(chain)} }}}}")


@given(st.sampled_from(SEEDS), CHAINED, CHAINED)
def test_through_variables_of_a_template(seed: str, first: list[str], second: list[str]) -> None:
    check(f"{{% set one = {seed} | {' | '.join(first)} %}}{{{{ one | {' | '.join(second)} }}}}")
