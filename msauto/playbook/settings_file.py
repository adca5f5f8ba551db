"""Where ``msauto.toml`` and the ledger are. Completion needs these alone, so this module imports nothing of msauto."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

NAME: Final = "msauto.toml"


def settings_above(*starts: Path) -> Iterator[Path]:
    """Yield each settings file from a folder upward to the root of its repository, or of the file system."""
    for start in starts:
        try:
            folder, here = start.resolve(), Path.cwd()
        except (OSError, ValueError, RuntimeError):
            # A removed folder, a name that cannot be one, a loop of links.
            continue
        for above in (folder, *folder.parents):
            file = above / NAME
            if os.path.lexists(file):  # one that cannot be read is an error, not a default
                yield file if start.is_absolute() else Path(os.path.relpath(file, here))
            if os.path.lexists(above / ".git"):
                break


def beside(path: Path, name: str) -> str:
    """Return the path of a name that a settings file has: it is relative to the folder of that file."""
    return str(path.parent / Path(os.path.expanduser(name)))  # noqa: PTH111 - no error for an unknown user


def state_folder(given: str | None, set_to: str | None) -> Path:
    """Return the folder of the ledger: the flag, the settings, ``$XDG_STATE_HOME/msauto``, ``~/.local/state/msauto``.

    There is one for each user, not for each working directory, so that all runs of a user share the locks. Where the
    user has no home, it begins with ``~``, and no ledger is opened there.
    """
    if given:
        return Path(os.path.expanduser(given))  # no shell expands it in --state-dir=~/msauto  # noqa: PTH111 - no error for an unknown user
    if set_to:
        return Path(set_to)
    home = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")  # noqa: PTH111 - as above
    return Path(home) / "msauto"
