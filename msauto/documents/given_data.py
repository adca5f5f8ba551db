"""Playbooks, inventories and variables that a program gives as data: documents, as if they were read from YAML."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date
from pathlib import PurePath
from typing import Any

from msauto.documents.document import Document, Problems, SourceNode
from msauto.documents.loader import MAX_DEPTH
from msauto.model.server import Secret
from msauto.secrets.redaction import can_redact
from msauto.secrets.sources import MarkedText, why_too_short


def given_document(data: Any, name: str) -> Document:
    """Return data as a document whose places are ``name`` and the path; raises :class:`InputError`.

    Mappings, lists, tuples, texts, numbers, true and false and ``None`` are as in YAML. Paths and dates become texts,
    and a :class:`Secret` is what ``!secret`` is in YAML. The data is copied.

    >>> given_document([{"tasks": ({},)}], "plays").place((0, "tasks", 0)).file
    'plays[0].tasks[0]'
    """
    problems = Problems()
    copied = _copied(data, SourceNode(Document(name, is_data=True)), problems)
    problems.check()
    return Document(name, copied, is_data=True)


def _copied(value: Any, node: SourceNode, problems: Problems) -> Any:
    if len(node.path) > MAX_DEPTH:
        raise node.error(f"nested deeper than {MAX_DEPTH} levels", "remove what contains itself", kind="yaml")
    match value:
        case Mapping():
            return {
                name: _copied(each, node.child(_key(name, node, problems)), problems) for name, each in value.items()
            }
        case list() | tuple():
            return [_copied(each, node.child(index), problems) for index, each in enumerate(value)]
        case float() if not math.isfinite(value):
            problems.add(node.problem(f"{value} is not a number", "write a number", kind="wrong-type"))
        case None | bool() | int() | float() | MarkedText():
            return value
        case str() | PurePath():
            return _text(str(value), node, problems)
        case date():
            return value.isoformat()
        case Secret():
            text = _text(value.reveal(), node, problems)
            if "{{" not in text and not can_redact(text):  # the result of a template is checked later
                problems.add(node.problem(*why_too_short(text), kind="secret"))
            return MarkedText(text)
        case _:
            why = f"a value of the type {type(value).__name__} is not possible here"
            problems.add(node.problem(why, "use texts, numbers, true and false, lists and mappings", kind="wrong-type"))
    return None


def _key(name: Any, node: SourceNode, problems: Problems) -> str:
    if not isinstance(name, str):
        problems.add(node.problem(f"the key {name!r} is not text", "put it in quotes", kind="yaml"))
    return str(name)


def _text(text: str, node: SourceNode, problems: Problems) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        problems.add(node.problem("the text is not valid Unicode", "decode it from its encoding", kind="yaml"))
    return str(text)
