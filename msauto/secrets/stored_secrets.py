"""Reading a secret from where it is kept outside of a text: a file, or the keyring of the system."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Final

_LARGEST: Final = 65536


class SecretSourceError(ValueError):
    """A secret cannot be read; neither the message nor ``remedy`` shows it."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.remedy = remedy


def secret_in_file(path: Path, shown: str) -> str:
    """Return the secret that a file contains; ``shown`` is its name in errors. Raises :class:`SecretSourceError`."""
    try:
        if not path.is_dir() and path.stat().st_size > _LARGEST:
            raise SecretSourceError(
                f"the file {shown!r} is too large for a secret", "use a file that contains only the secret"
            )
        text = path.read_bytes().decode("utf-8-sig")
    except SecretSourceError:
        raise
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise SecretSourceError(
            f"cannot read the file {shown!r}: {why}", "use a file that contains the secret"
        ) from None
    text = text.removesuffix("\n").removesuffix("\r")  # editors add a line end
    if not text:
        raise SecretSourceError(f"the file {shown!r} is empty", "write the secret into it")
    return text


def secret_in_keyring(service: str, user: str) -> str:
    """Return the secret of a user in the system keyring; raises :class:`SecretSourceError`."""
    try:
        text = import_module("keyring").get_password(service, user)
    except ImportError:
        remedy = "pip install 'msauto[keyring]', or use the environment or a file"
        raise SecretSourceError("the package keyring is not installed", remedy) from None
    except Exception as error:  # noqa: BLE001 - each backend raises errors of its own
        why = type(error).__name__
        raise SecretSourceError(f"cannot read the system keyring ({why})", "unlock it, or use a file") from None
    if not text:
        remedy = f"keyring set {service} {user}"
        raise SecretSourceError(f"the system keyring has no secret of {user!r} for {service!r}", remedy)
    return str(text)
