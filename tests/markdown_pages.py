"""What a reader of Markdown makes of a page, and what is left in it that a forge would act on."""

from __future__ import annotations

import re
from html import escape
from html.parser import HTMLParser

from markdown_it import MarkdownIt
from markdown_it.token import Token

_READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
ACTIVE = re.compile(
    r"@\w|#\w|[!&~%$]\w|%\"|://|www\.\w|:(?!\d\d:)[\w+-]+:|\[[ x^!\w]|\$|<"
    r"|\b(?:GH|[A-Z]{2,})-\d|\b(?=[a-f]*\d)[0-9a-f]{7,40}\b",
    re.IGNORECASE,
)
"""Mentions, references, links, emoji, mathematics and markup, as forges find them in a text."""


class _Tags(HTMLParser):
    """The tags of HTML, and the texts that are not in code."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.in_code = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "code" and not attrs:
            self.in_code = True
        else:
            self.tags.append(f"<{tag} {attrs}>")

    def handle_endtag(self, tag: str) -> None:
        if tag == "code":
            self.in_code = False
        else:
            self.tags.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        if not self.in_code:
            self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        self.tags.append(f"comment of {data.split(maxsplit=1)[0]}")

    def handle_pi(self, data: str) -> None:
        self.tags.append(f"instruction {data}")

    def handle_decl(self, decl: str) -> None:
        self.tags.append(f"declaration {decl}")


class MarkdownPage:
    """A page: its ``structure`` (blocks, tags, links, but no texts and code), and the ``texts`` outside of code."""

    def __init__(self, page: str) -> None:
        self.structure: list[str] = []
        self.texts: list[str] = []
        for token in _READER.parse(page):
            self._read(token)

    def _read(self, token: Token) -> None:
        if token.type == "html_block":
            self._read_html(token.content)
        elif token.type != "inline":
            self.structure.append(f"{token.type} {token.tag}")
        children = token.children or []
        inline = ""
        for child in children:
            if child.type in {"text", "text_special", "softbreak"}:
                inline += escape(child.content)
            elif child.type == "html_inline":
                inline += child.content
            elif child.type != "code_inline":
                self.structure.append(f"{child.type} {child.tag} {child.attrs}")
        self._read_html(inline)

    def _read_html(self, content: str) -> None:
        reader = _Tags()
        reader.feed(content)
        reader.close()
        self.structure += reader.tags
        self.texts += reader.texts

    @property
    def active(self) -> list[str]:
        """The texts that a forge would act on."""
        return [text for text in self.texts if ACTIVE.search(text.removeprefix("[!CAUTION]"))]
