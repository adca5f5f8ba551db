"""Where a secret may be used in a playbook. Values that name a target or decide are shown, so they cannot be secret."""

from __future__ import annotations

from typing import Any

from msauto.documents.document import Problems, SourceNode
from msauto.playbook.schema.play import MODULES
from msauto.playbook.templates.names import UsesAssetError
from msauto.playbook.templates.rendering import render_data
from msauto.playbook.variables.variables import TemplateScope
from msauto.secrets.marked_text import (
    NOT_ALLOWED,
    DataPath,
    may_be_secret,
    misplaced_secrets,
    secret_paths,
)

_MODULES = frozenset(MODULES) - {"block"}
_WRITE_OUT = "write the value directly, or use another variable"
_NO_TEXT = "this template turns a secret into a value that is not text, and cannot be redacted"
_MAKE_TEXT = "use the secret itself, or a text made from it"


def render_task(module: str, data: Any, scope: TemplateScope, node: SourceNode, *, keep: bool = False) -> Any:
    """Render the arguments of a task; raises :class:`InputError` for secrets that cannot be redacted.

    ``keep`` as for :func:`~msauto.playbook.templates.rendering.render_data`.
    """
    marks = scope.taint
    before = len(marks.lost)
    rendered = render_data(data, scope, node, keep=keep)
    if not marks.found:
        return rendered
    problems = Problems(*(where.problem(_NO_TEXT, _MAKE_TEXT, kind="secret") for where in marks.lost[before:]))
    del marks.lost[before:]
    for way, message, remedy in misplaced_secrets(rendered, lambda way: may_be_secret(module, way)):
        problems.add(node.child(*way).problem(message, remedy, kind="secret"))
    problems.check()
    return rendered


def may_be_tagged(way: DataPath) -> bool:
    """Return whether a text of a playbook may be tagged as secret."""
    for number, part in enumerate(way):
        if part in {"vars", "loop"}:
            return True
        if part in _MODULES:
            return may_be_secret(str(part), way[number + 1 :])
    return False


def shown(data: Any, node: SourceNode) -> Any:
    """Return rendered data that will be shown; raises :class:`InputError` for a secret in it."""
    Problems(
        *(node.child(*way).problem(NOT_ALLOWED, _WRITE_OUT, kind="secret") for way, _ in secret_paths(data))
    ).check()
    return data


def render_shown(data: Any, scope: TemplateScope, node: SourceNode, why: str = "the asset is not known yet") -> Any:
    """Render data that will be shown; raises :class:`InputError` for a secret in it, and for the use of the asset."""
    try:
        return shown(render_data(data, scope, node), node)
    except UsesAssetError as error:
        raise node.error(f"asset cannot be used here: {why}", kind="template") from error
