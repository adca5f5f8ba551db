"""Secrets that an inventory names and does not hold: a file of their own, or the system's keyring."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Final

from msauto.model.server import Secret
from msauto.playbook.files import beside
from msauto.playbook.yaml.document import SourceNode

_LARGEST: Final = 65536


def read_secret(
    text: str | None, file: str | None, keyring: str | None, user: str, node: SourceNode, key: str
) -> Secret | None:
    """Return a secret as it was said, from its file beside the inventory, or from the keyring entry of a user.

    ``key`` is the key of the mapping at ``spot`` that says it; its file is ``<key>_file``, its keyring service
    ``<key>_keyring``. Raises :class:`InputError`, which never shows what was read.
    """
    if file is not None:
        return _of_file(file, node.child(f"{key}_file"))
    if keyring is not None:
        return _of_keyring(keyring, user, node.child(f"{key}_keyring"))
    return None if text is None else Secret(text)


def _of_file(file: str, node: SourceNode) -> Secret:
    path = Path(beside(node.document.file, file))
    try:
        if not path.is_dir() and path.stat().st_size > _LARGEST:
            raise node.error(f"the file {file!r} is too large for a secret", "name a file that holds it alone")
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is no UTF-8 text"
        raise node.error(f"the file {file!r} cannot be read: {why}", "name a file that holds the secret") from None
    text = text.removesuffix("\n").removesuffix("\r")  # editors leave a line end there
    if not text:
        raise node.error(f"the file {file!r} is empty", "write the secret into it")
    return Secret(text)


def _of_keyring(service: str, user: str, node: SourceNode) -> Secret:
    try:
        text = import_module("keyring").get_password(service, user)
    except ImportError:
        remedy = "pip install 'keyring>=25', or take the secret from the environment or a file"
        raise node.error("the system keyring needs a package that is not installed: keyring", remedy) from None
    except Exception as error:  # noqa: BLE001 - each backend raises errors of its own
        why = type(error).__name__
        raise node.error(f"the system keyring cannot be asked ({why})", "unlock it, or use a file") from None
    if not text:
        remedy = f"keyring set {service} {user}"
        raise node.error(f"the system keyring has no secret of {user!r} for {service!r}", remedy)
    return Secret(text)
