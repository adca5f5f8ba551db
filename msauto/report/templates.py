"""Templates of HTML and Markdown: what they insert into HTML is escaped, unless it is marked as markup."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from msauto.report.sanitizing import show, visible
from msauto.report.sentences import folder_note, plural, server_of, target_heading
from msauto.report.value_texts import SIGNS, ValueWidth, change_parts, show_body, show_key

if TYPE_CHECKING:
    from jinja2 import Environment, Template


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

    environment = Environment(
        loader=PackageLoader("msauto", "."),
        autoescape=select_autoescape(["html.j2"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "show": show,
        "visible": visible,
        "plural": plural,
        "server": server_of,
        "heading": target_heading,
        "folder_note": folder_note,
        "key": show_key,
        "parts": change_parts,
        "body": show_body,
        "code": code,
        "entities": _entities,
    }
    environment.globals |= {"SIGNS": SIGNS, "SHORT": ValueWidth(200, 80)}
    return environment


def template(name: str) -> Template:
    """Return a template, named by its path in the package ``msauto``."""
    return _environment().get_template(name)


def code(text: str) -> str:
    """Return visible text as a Markdown code span that its content cannot end, table bars included.

    >>> code("a `b`"), code("a|b")
    ('``` a `b` ```', '<code>a&#124;b</code>')
    """
    if "|" in text:
        return f"<code>{_entities(text)}</code>"
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 2 if longest else 1)
    padded = f" {text} " if longest or text[:1] == " " or text[-1:] == " " else text
    return f"{fence}{padded}{fence}"


def _entities(text: str) -> str:
    """Return text with punctuation as entities: a bar in a code span ends the table cell even if it is escaped."""
    return "".join(sign if sign.isalnum() or sign == " " or ord(sign) > 127 else f"&#{ord(sign)};" for sign in text)
