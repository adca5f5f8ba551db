"""What a file is, by its content, and which command takes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Literal

from msauto.documents.document import Document, SourceNode

FileKind = Literal["playbook", "tasks", "inventory", "batch", "plan", "vars", "foreign"]
_OF_PLAYS: Final = {
    "hosts",
    "roles",
    "tasks",
    "pre_tasks",
    "import_playbook",
    "handlers",
    "vars_files",
}
VARS_FOLDERS: Final = ("group_vars", "host_vars")
_COMMANDS: Final = {
    "playbook": ("a playbook", "plan it: msauto plan {}"),
    "tasks": ("a file of tasks", "let a play import it: import_tasks: {}"),
    "inventory": ("an inventory", "name it with -i {}"),
    "batch": ("a batch file", "run its jobs: msauto batch run {}"),
    "plan": ("a saved plan", "apply it: msauto apply {}"),
}
"""What each kind of file is called, and what takes it."""


def kind_of_file(document: Document) -> FileKind:
    """Return the kind of a file by its content."""
    path = Path(document.file)
    data = document.data
    if isinstance(data, list):
        return _kind_of_list(data, path)
    if not isinstance(data, dict) or not set(path.parts).isdisjoint(VARS_FOLDERS):
        return "vars"
    if isinstance(data.get("tasks"), list) or {"hosts", "tasks"} <= data.keys():
        return "playbook"
    if data.get("format") == "msauto-plan":
        return "plan"
    if "jobs" in data and ("schedule" in data or path.stem == "batch"):
        return "batch"
    if "all" in data or any(map(_is_group, data.values())):
        return "inventory"
    return "vars"


def _kind_of_list(items: list[Any], path: Path) -> FileKind:
    # The models of all modules, which an inventory does not need:
    from msauto.playbook.schema.play import FOREIGN_MODULES, MODULES

    keys: set[str] = set().union(*(item for item in items if isinstance(item, dict)))
    if not keys.isdisjoint(_OF_PLAYS):
        return "playbook"
    if "src" in keys or (keys and path.stem == "requirements"):
        return "foreign"  # what Ansible Galaxy installs
    has_module = not keys.isdisjoint({*MODULES, *FOREIGN_MODULES})
    return "tasks" if has_module or any("." in str(key) for key in keys) else "playbook"


def _is_group(value: Any) -> bool:
    return isinstance(value, dict) and bool(value) and value.keys() <= {"hosts", "vars", "children"}


def check_kind(document: Document, expected: FileKind) -> None:
    """Raise :class:`InputError` for a file that is known to be of another kind than expected."""
    kind = kind_of_file(document)
    if kind in _COMMANDS and kind != expected:
        words, remedy = _COMMANDS[kind]
        message = f"this is {words}, not {_COMMANDS[expected][0]}"
        raise SourceNode(document).error(message, remedy.format(document.file), kind="file")
