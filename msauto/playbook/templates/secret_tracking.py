"""Secrets in templates: what is made with a secret is secret.

The use of secrets is noted for each template. If its evaluation touches one, its whole result is secret, whatever was
done with it. A value is marked by its class, :class:`MarkedText`. For values that cannot be marked (true, false,
null), :attr:`TaintTracker.lost` notes the place.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from msauto.documents.document import SourceNode
from msauto.secrets.marked_text import MarkedText, secret_paths, why_too_short
from msauto.secrets.redaction import HIDDEN, Secrets, can_redact


class TemplateFunctionError(Exception):
    """A filter or lookup that fails for a known reason; ``remedy`` is what to do. The message shows no secret."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


class TaintTracker:
    """The secrets of one run, and whether the template that is being evaluated touches one."""

    __slots__ = ("found", "lost", "touched")

    def __init__(self) -> None:
        self.found = Secrets()
        self.lost: list[SourceNode] = []
        """Places of values that were made with a secret and cannot be marked; the reader removes them."""
        self.touched = False

    def touch(self) -> None:
        """Note that the template that is being evaluated uses a secret."""
        self.touched = True

    def add(self, value: object) -> MarkedText:
        """Return a text marked as secret; raises :class:`TemplateFunctionError` for other values and short texts."""
        if value == HIDDEN:
            return MarkedText(HIDDEN)  # redacted already: `msauto vars` does not know the environment
        if isinstance(value, bool | Mapping | None) or (not isinstance(value, str) and hasattr(value, "__iter__")):
            raise TemplateFunctionError("only a text can be secret", "mark each text separately: | map('secret')")
        text = str(value)
        if not can_redact(text):
            raise TemplateFunctionError(*why_too_short(text))
        self.found.add(text)
        return MarkedText(text)

    def add_tagged(self, data: Any, *, templates: bool = False) -> None:
        """Add the texts of a file that are tagged as secret; ``templates``: also templates, which are not rendered."""
        for _, text in secret_paths(data):
            if templates or ("{{" not in text and "{%" not in text):
                self.found.add(text)

    def taint(self, value: Any, node: SourceNode) -> Any:
        """Return the result of a template that touched a secret, marked; note in ``lost`` what cannot be marked."""
        if isinstance(value, list):
            return [self.taint(each, node) for each in value]
        if isinstance(value, dict):
            if any(map(self.found.occurs_in, value)):
                self.lost.append(node)
            return {key: self.taint(each, node) for key, each in value.items()}
        if isinstance(value, bool | None):
            self.lost.append(node)
            return value
        text = value.isoformat() if isinstance(value, datetime | date) else str(value)
        if text != HIDDEN:
            self.found.add(text)
        return MarkedText(text)
