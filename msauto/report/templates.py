"""The templates of forms, which escape all that they insert: each ending of a name has the escape of its form.

HTML and XML are escaped by Jinja2. In the other forms each inserted value is, but a :class:`Written` text, which is in
the form already. Only functions that escape return one, and what is made of it, such as ``a ~ b``, is escaped again.
"""

from __future__ import annotations

import html
import json
import re
import shlex
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Final

from msauto.report import texts
from msauto.report.sanitizing import show, visible

if TYPE_CHECKING:
    from jinja2 import Environment, Template


class Written(str):
    """A text in the form of a template, in which it is inserted as it is."""

    __slots__ = ()


# Markdown ------------------------------------------------------------------------------------------------------

_PIECE: Final = re.compile(r"`([^`]+)`([.,;:)]*)(?!\S)|([^ ]+)")
"""What is in backticks, and the signs after it; or what is between spaces."""
_WORD: Final = re.compile(
    r"""["'(«„“]*"""
    r"[^\W_](?:[^\W_]|[_/'’](?=[^\W_])|(?<=\d)(?:[.,-]|:(?=\d\d(?!\d)))(?=\d)|-(?=[^\W\d_]))*"
    r"""(?:%[.,;)]*|[.,;:!?"')»”…]*)"""
    r"|[-+%&=][.,;:)]?|[^\x00-\x7f]"
)
"""What means nothing to Markdown and to forges wherever it is: letters, numbers, and signs between them."""
_MARK: Final = re.compile(r"[-+=]|\d+[.)]")
"""What begins a list or a heading where it is the first of a text."""
_COMMIT: Final = re.compile(r"\b(?=[a-f]*\d)[0-9a-f]{7,40}\b", re.IGNORECASE)
"""What forges take for a commit."""
_PUNCTUATION: Final = re.compile(r"[!-'*+.:-@\[-`{-~]")
"""All of ASCII but ``(),-/``, which mean nothing among letters."""
_LONGEST_WORD: Final = 200


def markdown_text(text: object) -> Written:
    """Return a text as Markdown that shows it, and does nothing else: words as they are, all else in code spans.

    What is in backticks becomes code, as in messages of msauto.

    >>> markdown_text("Film (1) of studio-a, 50 %: `exactly`"), markdown_text("by @everyone | #12 <img>")
    ('Film (1) of studio-a, 50 %: `exactly`', 'by `@everyone` <code>&#124;</code> `#12` `<img>`')
    """
    pieces: list[str] = []
    for quoted, end, word in _PIECE.findall(visible(str(text))):
        if quoted:
            pieces.append(f"{code(quoted)}{end}")
        elif _is_plain(word, is_first=not pieces):
            pieces.append(word)
        else:
            pieces.append(code(word))
    return Written(" ".join(pieces))


def _is_plain(word: str, *, is_first: bool) -> bool:
    """Return whether a word needs no escape."""
    if len(word) > _LONGEST_WORD or not _WORD.fullmatch(word):
        return False
    begins_a_block = is_first and _MARK.fullmatch(word)
    return not begins_a_block and not _COMMIT.search(word)


def code(text: object) -> Written:
    """Return a text as a Markdown code span that its content cannot end, table bars included.

    What CI systems take for a command where Markdown is printed, such as ``##[error]``, is written as entities, too.

    >>> code("a `b`"), code("a|b")
    ('``` a `b` ```', '<code>a&#124;b</code>')
    """
    shown = visible(str(text))
    if "|" in shown or "##" in shown:
        return Written(f"<code>{_entities(shown)}</code>")
    longest = _longest_run(shown)
    fence = "`" * (longest + 2 if longest else 1)
    needs_spaces = longest or not shown.strip() or shown != shown.strip(" ")
    return Written(f"{fence} {shown} {fence}" if needs_spaces else f"{fence}{shown}{fence}")


def code_block(lines: str) -> Written:
    """Return visible lines as a Markdown code block that they cannot end."""
    fence = "`" * max(3, _longest_run(lines) + 1)
    return Written(f"{fence}text\n{lines}\n{fence}\n\n")


def _longest_run(text: str) -> int:
    """Return the length of the longest run of backticks."""
    return max(map(len, re.findall("`+", text)), default=0)


def _entities(text: str) -> str:
    """Return text with punctuation as entities: a bar in a code span ends the table cell even if it is escaped."""
    return _PUNCTUATION.sub(lambda sign: f"&#{ord(sign[0])};", text)


def _in_html(text: object) -> Written:
    """Return a text as HTML code, for a place where Markdown is not read."""
    shown = html.escape(visible(str(text))).replace("##", "#&#35;")
    return Written(f"<code>{shown}</code>")


def _in_comment(text: object) -> Written:
    """Return a text for a comment of HTML, which it cannot end."""
    return Written(visible(str(text)).replace(">", "%3E").replace("##", "#%23"))


# Files of schedulers and metrics -------------------------------------------------------------------------------


def _label(value: object) -> str:
    """Escape the value of a label of Prometheus."""
    return str(value).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _unit(value: object) -> str:
    """Escape the specifiers of systemd."""
    return str(value).replace("%", "%%")


def _crontab(value: object) -> str:
    """Escape what cron takes for the end of a command."""
    return str(value).replace("%", r"\%")


def _yaml(value: object) -> str:
    """Return a value as JSON, which is YAML."""
    return json.dumps(value, ensure_ascii=False)


def _shell(value: object) -> str:
    """Quote an argument of a shell."""
    return shlex.quote(str(value))


_ESCAPES: Final[Mapping[str, Callable[[object], str]]] = {
    "md": markdown_text,
    "prom": _label,
    "service": _unit,
    "timer": _unit,
    "hardening": _unit,
    "crontab": _crontab,
    "yaml": _yaml,
    "install": _shell,
}
"""The escape of each form, by the ending of its templates; that of HTML and XML is in Jinja2."""
_MARKUP: Final = ("html", "xml")


@cache
def _environment(form: str) -> Environment:
    """Return the templates of a form; a form without an escape is an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined, Undefined

    escape = None if form in _MARKUP else _ESCAPES[form]

    def inserted(value: object) -> object:
        is_left_out = type(value) is Undefined  # the other side of an `if` without `else`
        if escape is None or is_left_out or isinstance(value, Written):
            return value
        return escape(value)

    environment = Environment(
        loader=PackageLoader("msauto", "."),
        autoescape=escape is None,  # noqa: S701 - `finalize` escapes in the other forms
        finalize=inserted,
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "show": show,
        "visible": visible,
        "plural": texts.plural,
        "server": texts.server_of,
        "heading": texts.target_heading,
        "folder_note": texts.folder_note,
        "key": texts.show_key,
        "parts": texts.change_parts,
        "body": texts.show_body,
        "code": code,
        "in_html": _in_html,
        "in_comment": _in_comment,
    }
    environment.globals |= {"SIGNS": texts.SIGNS}
    return environment


def template(name: str) -> Template:
    """Return a template, named by its path in the package ``msauto``."""
    form = name.removesuffix(".j2").rpartition(".")[2]
    return _environment(form).get_template(name)
