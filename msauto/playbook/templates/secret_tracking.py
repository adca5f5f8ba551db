"""Taint in templates: what is made with a secret is secret.

Taint is tracked for each template. If its evaluation touches a secret, its whole result is secret, whatever was done
with it. A value carries its taint by its class, :class:`TaintedText`. For values that cannot carry it (true, false,
null), :attr:`TaintTracker.lost` notes the place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from msauto.playbook.yaml.document import SourceNode
from msauto.secrets.redaction import HIDDEN, Secrets, can_redact
from msauto.secrets.secret_sources import SecretReference
from msauto.secrets.tainted_text import TaintedText, tainted_paths, why_too_short


class TemplateFunctionError(Exception):
    """A filter or lookup that fails for a known reason; ``remedy`` is what to do. The message shows no secret."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


@dataclass(slots=True)
class Evaluation:
    """One evaluation of a template.

    ``touched``: whether it used a secret. ``computed``: whether it did anything else with one than to put it, whole,
    beside other text. ``in_part``: whether the part that is being evaluated uses one.
    """

    touched: bool = False
    computed: bool = False
    in_part: bool = False


class TaintTracker:
    """The secrets of one run, and whether the templates that are being evaluated touch one."""

    __slots__ = ("_evaluations", "found", "lost")

    def __init__(self) -> None:
        self.found = Secrets()
        self.lost: list[SourceNode] = []
        """Places of values that were made with a secret and cannot carry taint; the reader removes them."""
        self._evaluations: list[Evaluation] = []

    def start(self) -> None:
        """Start the evaluation of a template; :meth:`end` ends it."""
        self._evaluations.append(Evaluation())

    def end_part(self, text: str) -> None:
        """End one part of a template that only joins its parts: a plain text, or the result of an expression."""
        evaluation = self._evaluations[-1]
        if evaluation.in_part:
            evaluation.computed |= not self.found.sources.can_be_saved(text)
            evaluation.in_part = False

    def end(self) -> Evaluation:
        """End the evaluation and return it."""
        evaluation = self._evaluations.pop()
        evaluation.computed |= evaluation.in_part
        return evaluation

    def touch(self) -> None:
        """Note that the template that is being evaluated uses a secret."""
        if self._evaluations:
            self._evaluations[-1].touched = self._evaluations[-1].in_part = True

    def add(self, value: object) -> TaintedText:
        """Return a text marked as secret; raises :class:`TemplateFunctionError` for other values and short texts."""
        if value == HIDDEN:
            return TaintedText(HIDDEN)  # redacted already: `msauto vars` does not know the environment
        if isinstance(value, bool | Mapping | None) or (not isinstance(value, str) and hasattr(value, "__iter__")):
            raise TemplateFunctionError("only a text can be secret", "mark each text separately: | map('secret')")
        text = str(value)
        if not can_redact(text):
            raise TemplateFunctionError(*why_too_short(text))
        self.found.add(text)
        return TaintedText(text)

    def add_tagged(self, data: Any, file: str = "", *, templates: bool = False) -> None:
        """Add the texts of a file that are tagged as secret; ``templates``: also templates, which are not rendered."""
        for place, text in tainted_paths(data):
            if templates or ("{{" not in text and "{%" not in text):
                self.found.add(str(text))
                if file:
                    self.found.sources.note(text, SecretReference("yaml", file, place))

    def taint(self, value: Any, node: SourceNode, *, computed: bool = True) -> Any:
        """Return the result of a template that touched a secret, tainted; note in ``lost`` what cannot carry taint.

        ``computed``: as for :class:`Evaluation`.
        """
        if isinstance(value, str):
            if not computed:
                self.found.sources.composed.add(str(value))
            return self._taint_text(value)
        if isinstance(value, list):
            return [self.taint(each, node) for each in value]
        if isinstance(value, dict):
            if any(map(self.found.occurs_in, value)):
                self.lost.append(node)
            return {key: self.taint(each, node) for key, each in value.items()}
        if isinstance(value, bool | None):
            self.lost.append(node)
            return value
        return self._taint_text(value.isoformat() if isinstance(value, datetime | date) else str(value))

    def _taint_text(self, text: str) -> TaintedText:
        if can_redact(text) and text != HIDDEN:
            self.found.add(str(text))
        return TaintedText(text)
