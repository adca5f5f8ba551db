"""How a plan or a result is shown, and the templates of HTML and Markdown.

What templates insert into HTML is escaped, unless it is marked as markup.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final

from msauto.errors import MsautoError

if TYPE_CHECKING:
    from jinja2 import Environment, Template
from msauto.report.clip_timeline import StillPlace
from msauto.report.sanitizing import show, visible
from msauto.report.texts import (
    SIGNS,
    ValueWidth,
    change_parts,
    folder_note,
    plural,
    server_of,
    show_body,
    show_key,
    target_heading,
)


@dataclass(frozen=True, slots=True)
class Layout:
    """How to show a plan or a result.

    ``verbosity`` 1 unfolds it, shows values whole and adds the requests; 2 adds the source of each change. ``width``:
    columns of the terminal. ``ascii_only``: no other signs than ASCII, except in titles. ``summary``: counts,
    deletions and refusals alone. ``name``: the playbook, by which CI finds its comment again. ``keep_going``: targets
    in error are left out. ``error``: why the command ends without applying the plan. ``stills``: pictures of clips.
    """

    colour: bool = False
    verbosity: int = 0
    width: int = 80
    ascii_only: bool = False
    summary: bool = False
    name: str = "plan"
    keep_going: bool = False
    error: MsautoError | None = None
    stills: Mapping[StillPlace, bytes] = field(default_factory=dict)


PLAIN: Final = Layout()


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
