"""Plan files on the command line, and how a plan is made again from what it names.

A plan file may come from an untrusted source. So it names files in the repository only: a server, or a file outside of
it, is given again on the command line. Nothing of it is sent.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from msgspec import structs

from msauto.api.options import OPTIONS
from msauto.codec import parse_json
from msauto.errors import InputError, MsautoError
from msauto.file_access import find_repository, may_be_there
from msauto.file_writing import write_file
from msauto.model.plan import InputHash, Plan, PlanOptions
from msauto.planning.saved_plan import invalid_plan, plan_document, plan_from_json
from msauto.playbook.input_files import Files
from msauto.primitives.iso_times import parse_datetime
from msauto.report.json import dump_document
from msauto.secrets.redaction import HIDDEN

_TEMPLATE: Final = re.compile(r"{[{%#]|\\")  # or an escaped one


def is_plan_file(path: str) -> bool:
    """Return whether a file is a JSON object, as a plan is; a playbook is a list."""
    try:
        with Path(path).open("rb") as file:
            return file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
    except (OSError, ValueError):
        return False


def read_plan_file(path: str) -> Plan:
    """Return a saved plan; raises :class:`InputError` if it is damaged or of another version."""
    try:
        data = parse_json(Path(path).read_bytes(), object_pairs_hook=_without_duplicates)
    except OSError as error:
        raise invalid_plan(path, f"cannot read the file: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise invalid_plan(path, f"this is neither a playbook nor a plan: {error}") from error
    return plan_from_json(data, path=path)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; refuse a duplicate key, because another reader may use the other value."""
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise ValueError(f"duplicate key {key!r}")
        values[key] = value
    return values


def write_plan_file(plan: Plan, path: Path) -> None:
    """Write the plan to a file, completely or not at all."""
    try:
        write_file(path, dump_document(plan_document(plan)), 0o600)  # readable by the owner only
    except OSError as error:
        raise MsautoError(
            f"cannot write the plan to {path}: {error.strerror}",
            remedy="name a file that you can write",
        ) from error


# Plan again ------------------------------------------------------------------------------------------------------


def open_plan_file(paths: Sequence[str], given: PlanOptions) -> tuple[Plan, PlanOptions, Path]:
    """Return a saved plan, the options with which it is made again, and the folder that its paths start from.

    That is the repository of the working folder; or that of the plan file, if only there the playbooks exist.
    """
    path = paths[0]
    if len(paths) > 1:
        raise invalid_plan(
            path, "a saved plan is applied alone", "name either the plan or playbooks"
        )
    plan = read_plan_file(path)
    if not (plan.options.playbooks or plan.options.undo):
        why = "the plan was made from data, and names no playbook to make it again"
        raise invalid_plan(path, why, "apply it in the program that made it: msauto.apply(plan)")
    base = find_repository(Path()) or Path.cwd()
    beside = find_repository(Path(path).parent)
    names = plan.options.playbooks or plan.options.inventories
    if beside is not None and not any(may_be_there(base / name) for name in names):
        base = beside
    return plan, options_again(plan.options, given, path, base), base


def options_again(kept: PlanOptions, given: PlanOptions, path: str, base: Path) -> PlanOptions:
    """Return the options with which a plan is made again; raises :class:`InputError`.

    ``given`` are those of the command line. Inventories and a server replace the kept ones, variables are added.
    ``path`` is the plan file, which names only files below ``base``.
    """
    for option in OPTIONS.values():
        value = option.fixed and getattr(given, option.field)
        if value and value != getattr(kept, option.field):
            message = f"{option.names[-1]} cannot change a saved plan"
            raise invalid_plan(path, message, "make the plan again with this flag")
    variables = _variables_again(kept, given, path)
    is_elsewhere = bool(given.inventories) or given.server is not None
    _require_given(kept, given, path, is_elsewhere=is_elsewhere)
    if not _is_instant(kept.now):
        raise invalid_plan(path, f"`now` is {kept.now!r}, which is not a time with an offset")
    place = partial(_placed, path=path, base=base)
    playbooks = tuple(map(place, kept.playbooks))
    inventories = given.inventories
    if not is_elsewhere:
        inventories = tuple(place(inventory, flag="-i ") for inventory in kept.inventories)
    extra_vars = []
    for text in variables:
        if text.startswith("@"):
            text = f"@{place(text[1:], flag='-e @')}"
        extra_vars.append(text)
    return structs.replace(
        kept,
        playbooks=playbooks,
        inventories=inventories,
        server=given.server,
        config=given.config,
        extra_vars=(*extra_vars, *given.extra_vars),
    )


def _require_given(kept: PlanOptions, given: PlanOptions, path: str, *, is_elsewhere: bool) -> None:
    """Refuse a plan file that alone decides where to send, or which limits hold; ``is_elsewhere``: it does not."""
    if not is_elsewhere and kept.server is not None:
        message = f"the plan was made for --server {kept.server}, and a plan file cannot decide where to send"
        flags = [f"-i {inventory}" for inventory in kept.inventories]
        flags.append(f"--server {kept.server}")
        raise invalid_plan(path, message, f"give it again: {' '.join(flags)}")
    if kept.config is not None and given.config is None:
        message = f"the plan was made with --config {kept.config}, and a plan file cannot decide which limits hold"
        raise invalid_plan(path, message, f"give it again: --config {kept.config}")


def _variables_again(kept: PlanOptions, given: PlanOptions, path: str) -> Sequence[str]:
    """Return the kept variables that are not given again; refuse one that is hidden.

    That includes a template: it could read any secret, and have it sent to where the author of the plan file can see
    it.
    """
    variables = []
    for text in kept.extra_vars:
        is_hidden = HIDDEN in text or _TEMPLATE.search(text)
        if is_hidden and not given.extra_vars:
            message = (
                f"the plan was made with -e {text}, and holds no secret or template of its own"
            )
            raise invalid_plan(path, message, "give it again with -e")
        if not is_hidden and text not in given.extra_vars:
            variables.append(text)
    return variables


def _placed(name: str, *, path: str, base: Path, flag: str = "") -> str:
    """Return the path of a file that a plan names, from the working folder; refuse one outside of ``base``."""
    full = os.path.normpath(Path(base, name))
    if not Path(full).is_relative_to(base):
        remedy = (
            f"give it again: {flag}{name}"
            if flag
            else "apply the playbooks themselves: msauto apply PLAYBOOK"
        )
        raise invalid_plan(
            path, f"the plan names {name}, which is outside of the repository {base}", remedy
        )
    working_folder = find_repository(Path()) or Path.cwd()
    return os.path.relpath(full) if Path(full).is_relative_to(working_folder) else full


def _is_instant(text: str) -> bool:
    try:
        return parse_datetime(text).tzinfo is not None
    except ValueError:
        return False


def changed_inputs(plan: Plan, base: Path, settings: InputHash | None) -> Iterator[str]:
    """Yield each file that is not as it was when a plan was made; a hidden hash is not compared.

    ``settings`` are those that apply now. A plan without settings may be applied with any: their limits hold.
    """
    files = Files()
    for file in plan.inputs:
        try:
            sha256 = hashlib.sha256(files.read(str(base / file.path))).hexdigest()
        except InputError:
            yield f"{file.path} cannot be read in {base}"
        else:
            if file.sha256 not in {HIDDEN, sha256}:
                yield f"{file.path} has changed"
    if plan.settings is None:
        return
    if settings is None:
        yield f"{plan.settings.path} is missing"
    elif settings.sha256 != plan.settings.sha256:
        yield f"{plan.settings.path} has changed"
