"""Plays and tasks, loaded and validated, before they are resolved for a host."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msauto.documents.document import SourceNode
from msauto.documents.strict_model import Model
from msauto.playbook.variables.variables import Variable


@dataclass(frozen=True, slots=True)
class SourceText:
    """A text of a playbook and its place: an expression of a ``when``, or a name under ``notify``."""

    text: str
    node: SourceNode


@dataclass(frozen=True, slots=True)
class InheritedKeys:
    """The keys that tasks inherit from their play, block or import."""

    conditions: tuple[SourceText, ...] = ()
    tags: frozenset[str] = frozenset()
    variables: tuple[Variable, ...] = ()
    files: tuple[str, ...] = ()
    handlers: tuple[str, ...] = ()
    notify: tuple[SourceText, ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """A task of a module: ``data`` is the whole mapping with its templates unrendered.

    ``args`` are the arguments of the module. Those with templates are validated again once they are rendered.
    """

    node: SourceNode
    module: str
    data: dict[str, Any]
    inherited: InheritedKeys
    args: Model

    @property
    def name(self) -> str:
        """The name as it is written; empty without one."""
        return str(self.data.get("name") or "")

    @property
    def args_node(self) -> SourceNode:
        """The node of the module's arguments."""
        return self.node.child(self.module)


@dataclass(frozen=True, slots=True)
class Play:
    """A play: ``data`` is its mapping with its templates unrendered, ``file`` the playbook that holds it."""

    node: SourceNode
    file: str
    data: dict[str, Any]
    inherited: InheritedKeys
    tasks: tuple[Task, ...]
    handlers: tuple[Task, ...]

    @property
    def folder(self) -> str:
        """The folder of the playbook."""
        return str(Path(self.file).parent)
