"""The filter ``secret``, and the filters that the sandbox puts around each name to track secrets."""

from __future__ import annotations

from typing import Any

from jinja2 import pass_context
from jinja2.runtime import Context, Undefined

from msauto.playbook.templates.registry import template_filter
from msauto.playbook.templates.secret_tracking import TaintTracker
from msauto.secrets.marked_text import MarkedText, holds_secret


def _tracker(context: Context) -> TaintTracker:
    tracker: TaintTracker = context.parent["__scope__"].taint
    return tracker


# Filters that the sandbox puts around each name ----------------------------------------------------------------


@pass_context
def touched(context: Context, value: Any) -> Any:
    """Return a value that a template uses; note whether it contains a secret."""
    tracker = _tracker(context)
    if tracker.found and not isinstance(value, Undefined):
        owner = getattr(value, "__self__", None)  # the object that a method belongs to
        if holds_secret(value) or (owner is not None and holds_secret(owner)):
            tracker.touch()
    return value


@pass_context
def opened(context: Context, value: Any) -> Any:
    """Return a value whose items or attributes a template uses; note whether it is a secret itself: ``token[0]``."""
    if isinstance(value, MarkedText):
        _tracker(context).touch()
    return value


@template_filter
@pass_context
def secret(context: Context, value: Any) -> str:
    """A text that is marked as secret: it is sent, and never shown (docs/how-to/secrets.md).

    Example: 'a-token' | secret
    """
    if isinstance(value, Undefined):
        str(value)  # raises: the name is undefined
    marked = _tracker(context).add(value)
    _tracker(context).touch()
    return marked
