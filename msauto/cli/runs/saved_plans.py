"""Plan files on the command line: telling them from playbooks, reading them, finding the settings that they go with."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msauto.errors import InputError, Problem, SourceLocation
from msauto.model.plan import Plan
from msauto.planning.saved_plans.plan_file import plan_from_json
from msauto.playbook.settings.settings import NAME


def is_plan_file(path: str) -> bool:
    """Tell whether a file is JSON rather than a playbook, which is a list; one that cannot be read is neither."""
    try:
        with Path(path).open("rb") as file:
            return file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
    except (OSError, ValueError):
        return False


def read_plan_file(path: str) -> Plan:
    """Return a saved plan; raises :class:`InputError` for one that is spoilt, or of another version."""
    return plan_from_json(_json(path), path=path)


def settings_folder(paths: Sequence[str]) -> Path:
    """Return the folder whose ``msauto.toml`` holds: that of the playbooks, also of those that a saved plan is from.

    A plan that is kept elsewhere must not escape the limits and freezes of its playbooks.
    """
    folders = [_folder(path) for path in paths[:1]]
    if paths and is_plan_file(paths[0]):
        folders = [*_input_folders(paths[0]), *folders]
    folders.append(Path())
    return next((folder for folder in folders if (folder / NAME).is_file()), folders[0])


def _folder(path: str) -> Path:
    return Path(path) if Path(path).is_dir() else Path(path).parent


def _input_folders(path: str) -> Iterator[Path]:
    data = _json(path)
    inputs = data.get("inputs") if isinstance(data, dict) else None
    for file in inputs if isinstance(inputs, list) else ():
        if isinstance(file, dict) and isinstance(file.get("path"), str):
            yield Path(file["path"]).parent


def _json(path: str) -> Any:
    try:
        return json.loads(Path(path).read_bytes(), object_pairs_hook=_unlike)
    except OSError as error:
        raise _refuse(path, f"the file cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise _refuse(path, f"this is neither a playbook nor a plan: {error}") from error


def _unlike(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; of a key that stands twice, a reader may have seen the other one."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"the key {twice!r} stands twice")
    return found


def _refuse(path: str, message: str) -> InputError:
    return InputError([Problem(message, SourceLocation(path), "a plan is made by `msauto plan --out FILE`")])
