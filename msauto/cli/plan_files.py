"""Plan files on the command line: recognize, read, and write them; find the settings that apply to them."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msauto.errors import InputError, MsautoError, Problem, SourceLocation
from msauto.file_writing import write_file
from msauto.model.plan import Plan
from msauto.planning.saved_plans.plan_file import plan_from_json, saved_document
from msauto.planning.saved_plans.plan_secrets import ReadSecret
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


def settings_starts(paths: Sequence[str]) -> Iterator[Path]:
    """Yield the folders from which ``msauto.toml`` is searched: that of the first playbook.

    A plan kept in another folder must not escape the limits and freezes of its playbooks, so what it was made from
    comes first.
    """
    for path in paths[:1]:
        if is_plan_file(path):
            yield from _input_folders(path)
        yield Path(path) if os.path.isdir(path) else Path(path).parent  # noqa: PTH112 - no error for a bad name


def write_plan_file(plan: Plan, path: str) -> None:
    """Write the plan to a file, completely or not at all; raises ``PlanningError`` for a secret without a source."""
    document = saved_document(plan)
    try:
        write_file(Path(path), dump_document(document), 0o600)  # readable by the owner only
    except OSError as error:
        raise MsautoError(
            f"cannot write the plan to {path}: {error.strerror}", remedy="name a file that you can write"
        ) from error


def _input_folders(path: str) -> Iterator[Path]:
    data = _read_json(path)
    settings, inputs = (data.get("settings"), data.get("inputs")) if isinstance(data, dict) else (None, None)
    for file in (settings, *(inputs if isinstance(inputs, list) else ())):
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
