"""Finds roles and reads their variables: ``roles/NAME/`` with tasks, handlers, defaults, vars and files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msauto.documents.document import SourceNode
from msauto.errors import nearest
from msauto.file_access import may_be_there
from msauto.playbook.input_files import Files, beside
from msauto.playbook.variables import Level, Variable, read_variables

ROLE_PARTS = ("tasks", "handlers", "defaults", "vars", "meta")
"""The folders of a role whose file ``main.yml`` msauto reads."""
_ENDINGS = (".yml", ".yaml", "")
_LEVELS = {"defaults": Level.ROLE_DEFAULTS, "vars": Level.ROLE_VARS}


def role_places(playbook: str, folders: Sequence[str]) -> tuple[str, ...]:
    """Return the folders in which the roles of a playbook are; ``folders`` are those of the settings."""
    return tuple(dict.fromkeys((beside(playbook, "roles"), *folders)))


def find_role(name: str, places: Sequence[str], node: SourceNode) -> str:
    """Return the folder of a role; raises :class:`InputError` with the places, and the nearest name."""
    if folder := next(filter(os.path.isdir, (str(Path(place, name)) for place in places)), ""):
        return folder
    known: list[str] = []
    for place in places:
        with suppress(OSError):
            known += os.listdir(place)  # noqa: PTH208 - names
    remedy = nearest(name, known) or f"create {Path(places[0], name, 'tasks', 'main.yml')}"
    if not remedy.endswith("?"):
        remedy += "; [roles] path in msauto.toml names other folders"
    raise node.error(f"role {name!r} not found in {' or '.join(places)}", remedy, kind="file")


def main_file(folder: str, part: str) -> str:
    """Return the main file of a part of a role; empty if the role has no such part."""
    for ending in _ENDINGS:
        path = str(Path(folder, part, f"main{ending}"))
        # A link that leads nowhere, or a folder in which this user may not look: reading it raises.
        if os.path.lexists(path) or may_be_there(path):
            return path
    return ""


def role_of(file: str) -> str:
    """Return the folder of the role that has a file as the main file of one of its parts; empty for other files."""
    path = Path(file)
    if path.stem != "main" or path.suffix not in _ENDINGS or path.parent.name not in ROLE_PARTS:
        return ""
    folder = str(path.parent.parent)
    is_role = main_file(folder, "tasks") or main_file(folder, "handlers")
    return folder if is_role else ""


def role_variables(folder: str, playbook: str, node: SourceNode, files: Files) -> list[Variable]:
    """Return the defaults and variables of a role that ``node`` names; raises :class:`InputError`.

    Its dependencies would run before it, so they are a problem.
    """
    variables: list[Variable] = []
    for part in (*_LEVELS, "meta"):
        if not (path := main_file(folder, part)):
            continue
        files.check_named(path, playbook, node)
        document = files.document(path)
        if part in _LEVELS:
            variables += read_variables(document.data, _LEVELS[part], SourceNode(document))
        elif isinstance(document.data, dict) and document.data.get("dependencies"):
            remedy = "list these roles before it under roles: of the play, or use import_role in its tasks/main.yml"
            why = "dependencies of roles are not supported"
            meta = SourceNode(document, ("dependencies",))
            files.problems.append(meta.problem(why, remedy, key=True, kind="not-supported"))
    return variables
