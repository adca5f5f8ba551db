"""Plan files on the command line: recognize, read, and write them; find the settings that apply to them."""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msauto.errors import InputError, MsautoError, Problem, SourceLocation
from msauto.model.plan import Plan
from msauto.planning.saved_plans.plan_file import plan_from_json, saved_document
from msauto.planning.saved_plans.plan_secrets import ReadSecret
from msauto.playbook.settings.settings import NAME
from msauto.report.json import dump_document


def is_plan_file(path: str) -> bool:
    """Return whether a file is a JSON object, as a plan is; a playbook is a list."""
    try:
        with Path(path).open("rb") as file:
            return file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
    except (OSError, ValueError):
        return False


def read_plan_file(path: str, read_secret: ReadSecret | None = None) -> Plan:
    """Return a saved plan; raises :class:`InputError` if it is damaged or of another version.

    ``read_secret`` as for :func:`~msauto.planning.saved_plans.plan_file.plan_from_json`.
    """
    return plan_from_json(_read_json(path), path=path, read_secret=read_secret)


def settings_folder(paths: Sequence[str]) -> Path:
    """Return the folder of the ``msauto.toml`` that applies: that of the playbooks, also for a plan made from them.

    A plan kept in another folder must not escape the limits and freezes of its playbooks.
    """
    folders = [Path(path) if Path(path).is_dir() else Path(path).parent for path in paths[:1]]
    if paths and is_plan_file(paths[0]):
        folders = [*_input_folders(paths[0]), *folders]
    folders.append(Path())
    return next((folder for folder in folders if (folder / NAME).is_file()), folders[0])


def write_plan_file(plan: Plan, path: str) -> None:
    """Write the plan to a file, completely or not at all; raises ``PlanningError`` for a secret without a source."""
    document = saved_document(plan)
    target = Path(path)
    part: Path | None = None
    try:
        if target.exists() and not target.is_file():
            with target.open("w", encoding="utf-8") as pipe:  # for example; there is nothing to replace
                pipe.writelines(dump_document(document))
            return
        number, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)  # readable by the owner only
        part = Path(name)
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.writelines(dump_document(document))
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    except OSError as error:
        if part is not None:
            part.unlink(missing_ok=True)
        raise MsautoError(
            f"cannot write the plan to {path}: {error.strerror}", remedy="name a file that you can write"
        ) from error


def _input_folders(path: str) -> Iterator[Path]:
    data = _read_json(path)
    inputs = data.get("inputs") if isinstance(data, dict) else None
    for file in inputs if isinstance(inputs, list) else ():
        if isinstance(file, dict) and isinstance(file.get("path"), str):
            yield Path(file["path"]).parent


def _read_json(path: str) -> Any:
    try:
        return json.loads(Path(path).read_bytes(), object_pairs_hook=_without_duplicates)
    except OSError as error:
        raise _invalid(path, f"cannot read the file: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise _invalid(path, f"this is neither a playbook nor a plan: {error}") from error


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; refuse a duplicate key, because another reader may use the other value."""
    found = dict(pairs)
    if len(found) < len(pairs):
        duplicate = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"duplicate key {duplicate!r}")
    return found


def _invalid(path: str, message: str) -> InputError:
    return InputError(
        [Problem(message, SourceLocation(path), "make a plan with `msauto plan --out FILE`", kind="plan-file")]
    )
