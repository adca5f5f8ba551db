"""``msauto init [DIR]``: a new automation repository that validates."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click

from msauto.cli.flags import option
from msauto.cli.help import HelpCommand
from msauto.cli.output import print_message, print_result
from msauto.errors import MsautoError, RefusedError
from msauto.exit_codes import OK
from msauto.playbook.schema.json_schema import json_schema
from msauto.report.json import dump

_HIDDEN = re.compile(r"(?<![^/])dot-")
"""Prefix of hidden files in ``skeleton``: builds leave out names that begin with a dot."""
_SCHEMAS = ("playbook", "tasks", "handlers", "inventory", "settings", "batch")
"""Those that ``.vscode/settings.json`` maps."""


@click.command("init", cls=HelpCommand)
@click.argument("folder", default=".", type=click.Path(file_okay=False), metavar="[DIR]")
@option("--force", "Also in a folder that is not empty; existing files are never overwritten.")
def command(*, folder: str, force: bool) -> int:
    """Create an automation repository in DIR, or here: inventory, playbook, settings, batch, CI, pre-commit hooks."""
    target = Path(folder)
    _check(target, force=force)
    created: list[str] = []
    for name, data in repository():
        if _write(target / name, data):
            created.append(name)
        else:
            print_message(f"Unchanged: {target / name}")
    if created:
        print_result("".join(f"{target / name}\n" for name in created))
        enter = "" if folder == "." else f"  cd {shlex.quote(folder)}\n"
        print_message(f"Repository created. Next:\n{enter}{_NEXT}")
    return OK


_NEXT = """\
  msauto validate .                                # find errors, offline
  msauto simulate                                  # in another terminal: start a test server
  msauto plan playbooks/site.yml                   # show what would change
Then add your servers to inventory.yml, and read README.md."""


def repository() -> Iterator[tuple[str, bytes]]:
    """Yield the files of a new repository: relative path and content; its schemas last.

    Of what an installation holds beside them, bytecode is not part of it.
    """
    root = Path(__file__).parents[1] / "skeleton"
    files = {}
    for path in root.rglob("*"):
        if path.is_file() and path.suffix != ".pyc":
            name = path.relative_to(root).as_posix()
            files[_HIDDEN.sub(".", name)] = path
    for name, path in sorted(files.items()):
        yield name, path.read_bytes()
    for name in _SCHEMAS:
        yield f"schemas/{name}.json", dump(json_schema(name)).encode()


def _check(target: Path, *, force: bool) -> None:
    try:
        is_full = target.exists() and any(path.name != ".git" for path in target.iterdir())
    except OSError as error:
        raise MsautoError(
            f"cannot read {target}: {error.strerror}", remedy="name another folder"
        ) from error
    if is_full and not force:
        name = "the working folder" if target == Path() else target
        raise RefusedError(
            f"{name} is not empty",
            remedy="name a new folder, or add the missing files with --force",
        )


def _write(path: Path, data: bytes) -> bool:
    """Write a file unless it exists; return whether it was written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            return False
        with path.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise MsautoError(
            f"cannot write {path}: {error.strerror}", remedy="name another folder"
        ) from error
    return True
