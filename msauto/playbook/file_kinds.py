"""What a file is, by its content, and which command takes it."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from msauto.documents.document import Document, SourceNode

FileKind = Literal["playbook", "tasks", "inventory", "batch", "plan", "vars", "foreign"]
_OF_PLAYS: Final = {"hosts", "roles", "tasks", "pre_tasks", "import_playbook", "handlers", "vars_files"}
VARS_FOLDERS: Final = ("group_vars", "host_vars")
_TAKEN: Final = {
    "playbook": ("a playbook", "plan it: msauto plan {}"),
    "tasks": ("a file of tasks", "let a play import it: import_tasks: {}"),
    "inventory": ("an inventory", "name it with -i {}"),
    "batch": ("a batch file", "run its jobs: msauto batch run {}"),
    "plan": ("a saved plan", "apply it: msauto apply {}"),
}
"""What each kind of file is called, and what takes it."""


def kind_of_file(document: Document) -> FileKind:
    """Return the kind of a file by its content."""
    data = document.data
    if isinstance(data, list):
        # The models of all modules, which an inventory does not need:
        from msauto.playbook.schema.play import FOREIGN_MODULES, MODULES

        named: set[str] = set().union(*(item for item in data if isinstance(item, dict)))
        if not named or named & _OF_PLAYS:
            return "playbook"
        if "src" in named or Path(document.file).stem == "requirements":
            return "foreign"  # what Ansible Galaxy installs
        is_task = not named.isdisjoint({*MODULES, *FOREIGN_MODULES}) or any("." in str(name) for name in named)
        return "tasks" if is_task else "playbook"
    if any(part in VARS_FOLDERS for part in Path(document.file).parts) or not isinstance(data, dict):
        return "vars"
    if isinstance(data.get("tasks"), list) or {"hosts", "tasks"} <= data.keys():
        return "playbook"
    if data.get("format") == "msauto-plan":
        return "plan"
    if "jobs" in data and ("schedule" in data or Path(document.file).stem == "batch"):
        return "batch"
    groups = (value for value in data.values() if isinstance(value, dict) and value)
    if "all" in data or any(set(value) <= {"hosts", "vars", "children"} for value in groups):
        return "inventory"
    return "vars"


def check_kind(document: Document, expected: FileKind) -> None:
    """Raise :class:`InputError` for a file that is known to be of another kind than expected."""
    kind = kind_of_file(document)
    if kind in _TAKEN and kind != expected:
        called, taken = _TAKEN[kind]
        message = f"this is {called}, not {_TAKEN[expected][0]}"
        raise SourceNode(document).error(message, taken.format(document.file), kind="file")
