"""Handlers that can never run: nobody notifies them, or another of the same name stands in front."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from msauto.errors import Problem
from msauto.playbook.schema.values import as_list, is_template
from msauto.playbook.tasks.plays import Play
from msauto.playbook.yaml.document import SourceNode, nearest


def never_notified(plays: Sequence[Play]) -> Iterator[Problem]:
    """Yield a warning for each handler that no task and no other handler of its play notifies."""
    for play in plays:
        names = _notified(play)
        if names is None:
            continue  # a template says who is notified
        for name, node in _handlers(play):
            if name not in names:
                hint = nearest(name, names)
                problem = node.problem(
                    f"nobody notifies the handler {name!r}, so it never runs",
                    hint if hint.startswith("did") else "add notify: to a task, or leave the handler out",
                )
                yield replace(problem, level="warning")


def _handlers(play: Play) -> Iterator[tuple[str, SourceNode]]:
    handlers = play.data.get("handlers")
    for index, handler in enumerate(handlers if isinstance(handlers, list) else []):
        name = handler.get("name") if isinstance(handler, dict) else None
        if isinstance(name, str) and not is_template(name):
            yield str(name), play.node.child("handlers", index, "name")


def _notified(play: Play) -> set[str] | None:
    """Return all names that are notified; ``None`` where that is not known."""
    texts = list(_notify_in({name: play.data.get(name) for name in ("tasks", "handlers")}))
    for document in {id(task.node.document): task.node.document for task in play.tasks}.values():
        if document is not play.node.document:
            texts += _notify_in(document.data)
    return None if any(is_template(text) for text in texts) else set(texts)


def _notify_in(data: Any) -> Iterator[str]:
    if isinstance(data, list):
        for item in data:
            yield from _notify_in(item)
    elif isinstance(data, dict):
        for name, value in data.items():
            if name == "notify":
                yield from (str(each) for each in as_list(value))
            elif name in {"tasks", "handlers", "block"}:
                yield from _notify_in(value)
