"""Templates escape what they insert: each form has its escape, and only what is listed here bypasses it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from msauto.report.templates import Written, _environment, template

ROOT: Final = Path(__file__).parents[3] / "msauto"
TEMPLATES: Final = sorted(ROOT.rglob("*.j2"))
BYPASSES: Final = re.compile(
    r"[\w\"<>]+\s*\|\s*(?:safe|e|escape|forceescape|tojson|urlize|xmlattr|striptags)\b|Markup|Written|__html__"
    r"|\bautoescape\b|\{%[-+]?\s*(?:raw|filter)\b"
)
"""What Jinja2 has to insert a text as it is, or escaped for another form."""
ALLOWED: Final = {
    ("plugins/pages/page/page.html.j2", "style|safe"): "our own style sheet",
    ("plugins/pages/page/page.html.j2", "script|safe"): "our own script",
    ("plugins/pages/page/page.html.j2", "piece|safe"): "JSON in which no sign looks like markup",
    ("plugins/pages/page/overview.html.j2", '"<br>"|safe'): "a constant between escaped lines",
    ("plugins/batch/summary.html.j2", '"<br>"|safe'): "a constant between escaped lines",
}
"""What bypasses the escape, and why that is safe."""
WRITING: Final = {
    "report/templates.py": "the escapes of Markdown",
    "report/markdown.py": "no timeline",
}
"""The modules that may call a text written in the form of a template."""


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_nothing_else_bypasses_the_escape() -> None:
    found = set()
    for path in TEMPLATES:
        for match in BYPASSES.finditer(
            re.sub(r"\{#.*?#\}", "", path.read_text("utf-8"), flags=re.DOTALL)
        ):
            found.add((name_of(path), match[0]))
    assert found == set(ALLOWED)


@pytest.mark.parametrize("sign", ["Markup(", "Written(", "autoescape=False"])
def test_no_module_makes_markup_of_its_own(sign: str) -> None:
    found = {name_of(path) for path in ROOT.rglob("*.py") if sign in path.read_text("utf-8")}
    values = {
        name for name in found if name.startswith("playbook/templates/")
    }  # which no form shows as they are
    assert found - values <= set(WRITING if sign == "Written(" else ())


@pytest.mark.parametrize("path", TEMPLATES, ids=name_of)
def test_each_template_is_one_of_a_form_with_an_escape(path: Path) -> None:
    assert template(name_of(path)).name == name_of(path)


def test_a_form_without_an_escape_is_an_error() -> None:
    with pytest.raises(KeyError):
        template("report/new.tex.j2").render()


TEXT: Final = 'a"b\\c\nd %h <i> @x'


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("md", r'`a"b\c\nd` `%h` `<i>` `@x`'),
        ("prom", r'a\"b\\c\nd %h <i> @x'),
        ("service", 'a"b\\c\nd %%h <i> @x'),
        ("crontab", 'a"b\\c\nd \\%h <i> @x'),
        ("yaml", r'"a\"b\\c\nd %h <i> @x"'),
        ("install", "'a\"b\\c\nd %h <i> @x'"),
        ("xml", "a&#34;b\\c\nd %h &lt;i&gt; @x"),
        ("html", "a&#34;b\\c\nd %h &lt;i&gt; @x"),
    ],
)  # fmt: skip
def test_the_escape_of_each_form(form: str, expected: str) -> None:
    made = _environment(form).from_string("{{ x }}")
    assert made.render(x=TEXT) == expected


@pytest.mark.parametrize(
    "source",
    ["{{ x ~ y }}", "{{ [x, y]|join }}", "{{ y|replace('z', x) }}", "{{ y|upper }}", "{{ y[1:] }}"],
)
def test_what_is_made_of_a_written_text_is_escaped_again(source: str) -> None:
    made = _environment("md").from_string(source).render(x="@all", y=Written("**z**"))
    assert re.sub("`[^`]*`", "", made).strip("* ") == ""
