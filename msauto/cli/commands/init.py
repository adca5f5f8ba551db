"""``msauto init DIR``: a new automation repository, in which everything validates."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import click

from msauto.cli.output import give, say
from msauto.errors import MsautoError, RefusedError

_DOT = "dot-"
"""Templates of hidden files are kept visible, so that no build leaves them out."""


@click.command("init", short_help="Make a new automation repository.")
@click.argument("folder", type=click.Path(file_okay=False), metavar="DIR")
@click.option("--force", is_flag=True, help="Also in a folder that is not empty; no file is ever overwritten.")
def command(*, folder: str, force: bool) -> int:
    """Make a new automation repository in DIR: inventory, an explained playbook, settings, CI, a pre-commit hook."""
    target = Path(folder)
    _check(target, force=force)
    made: list[str] = []
    kept: list[str] = []
    for name, data in repository():
        (made if _write(target / name, data) else kept).append(name)
    for name in kept:
        say(f"kept as it is: {target / name}")
    if made:
        give("".join(f"{target / name}\n" for name in made))
        say(_NEXT.format(folder=shlex.quote(folder)))
    return 0


_NEXT = """A new repository. Next:
  cd {folder}
  msauto validate .                                # finds every error, without a server
  msauto simulate                                  # in another terminal: a media server to try on
  msauto plan playbooks/site.yml                   # what would change; nothing is written
Then write your servers into inventory.yml, and read README.md."""


def repository() -> Iterator[tuple[str, bytes]]:
    """Yield the files of a new repository: relative path and content, in order of path."""
    root = files("msauto.cli") / "skeleton"
    yield from sorted(_walk(root, ""))


def _walk(folder: Traversable, before: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        name = f"{before}{_shown(entry.name)}"
        if entry.is_dir():
            yield from _walk(entry, f"{name}/")
        else:
            yield name, entry.read_bytes()


def _shown(name: str) -> str:
    return f".{name.removeprefix(_DOT)}" if name.startswith(_DOT) else name


def _check(target: Path, *, force: bool) -> None:
    try:
        full = target.exists() and any(target.iterdir())
    except OSError as error:
        raise MsautoError(f"{target} cannot be read: {error.strerror}", remedy="name another folder") from error
    if full and not force:
        raise RefusedError(
            f"{target} is not empty", remedy="name a new folder; or --force, which adds files and overwrites none"
        )


def _write(path: Path, data: bytes) -> bool:
    """Write a file that is not there yet; tell whether it was made."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return _create(path, data)
    except OSError as error:
        raise MsautoError(f"{path} cannot be written: {error.strerror}", remedy="name another folder") from error


def _create(path: Path, data: bytes) -> bool:
    try:
        file = path.open("xb")
    except FileExistsError:
        return False
    with file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return True
