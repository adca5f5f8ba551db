"""The folder of a local ledger: no other user may write there, so nothing in it leads to a file of others.

The rules are those of POSIX. Windows has neither owners by number nor these modes: its folder of a user is private.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from msauto.errors import LedgerError

_ROOT = 0
_OTHER_FOLDER = "or choose another folder: --state-dir, or state_dir of msauto.toml"


def require_known_home(folder: Path) -> None:
    """Raise ``LedgerError`` if ``~`` in a folder could not be replaced: some containers give a user no home."""
    if str(folder).startswith("~"):
        why = (
            f"the folder {folder} of the ledger cannot be used: the home of this user is not known"
        )
        raise LedgerError(
            why, remedy="name a folder: --state-dir, state_dir of msauto.toml, or XDG_STATE_HOME"
        )


def require_own_files(folder: Path, *names: str) -> None:
    """Raise ``LedgerError`` if a folder of the ledger, or one of these files in it, may be of others.

    No other user may own the folder, write there, or put another one in its place. What leads to it counts too: its
    parents, and the links among them. A link, or something else than a file, is not a file of the ledger. What does
    not exist yet is fine.
    """
    if hasattr(os, "geteuid"):
        named = folder.absolute()
        for path in dict.fromkeys((named, Path(os.path.realpath(named)))):
            if path.is_dir():
                _require_own(path)
            _require_safe_way(path)
    for name in names:
        path = folder / name
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            continue
        if not stat.S_ISREG(mode):
            kind = "a link" if stat.S_ISLNK(mode) else "not a file"
            raise LedgerError(
                f"the file {path} of the ledger cannot be used: it is {kind}",
                remedy="move it away; to keep the ledger elsewhere, name that folder: --state-dir, or state_dir "
                "of msauto.toml",
            )


def _require_own(folder: Path) -> None:
    status = folder.stat()
    user = os.geteuid()
    if status.st_uid not in {user, _ROOT}:
        remedy = f"run it as that user, give the folder to this one (chown -R {user} {folder}), {_OTHER_FOLDER}"
        why = f"the user {status.st_uid} owns it, and this is the user {user}"
        raise LedgerError(f"the folder {folder} of the ledger cannot be used: {why}", remedy=remedy)
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        why = "other users may write there"
        remedy = f"chmod go-w {folder}, {_OTHER_FOLDER}"
        raise LedgerError(f"the folder {folder} of the ledger cannot be used: {why}", remedy=remedy)


def _require_safe_way(path: Path) -> None:
    """A parent may be of another user or group, as in many containers, but not open to everybody."""
    unusable = "the folder of the ledger cannot be used"
    for parent in path.parents:
        if not parent.is_dir():
            continue
        mode = parent.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            why = f"in {parent}, every user may put another one in its place"
            raise LedgerError(f"{unusable}: {why}", remedy=f"chmod o-w {parent}, {_OTHER_FOLDER}")
    for link in (path, *path.parents):
        if not link.is_symlink():
            continue
        owner = link.lstat().st_uid
        if owner not in {os.geteuid(), _ROOT}:
            why = f"the user {owner} owns the link {link}"
            raise LedgerError(f"{unusable}: {why}", remedy=f"remove the link, {_OTHER_FOLDER}")
