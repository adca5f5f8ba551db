"""The names that hold secrets: one list for everything that shows what users wrote."""

from __future__ import annotations

import re
from typing import Final

SECRET_WORDS: Final = (
    *("password", "passwd", "pwd", "passphrase", "pass", "secret", "token", "bearer", "credential"),
    *("authorization", "auth", "api_key", "access_key", "secret_key", "private_key"),
)
"""The ends of such names, in any case; ``_`` also stands for ``-`` or nothing (``apiKey``)."""

_WHOLE: Final = frozenset({"pass", "auth", "pwd"})
"""Words that other words end with (``bypass``): no letter may precede them."""


def _pattern(word: str) -> str:
    return (r"(?<![a-z])" if word in _WHOLE else "") + word.replace("_", "[_-]?")


SECRET_NAME: Final = rf"(?:{'|'.join(map(_pattern, SECRET_WORDS))})s?(?:[_-]?\d+)?"
"""A regular expression for the end of such a name, for searches that ignore case."""

_NAME = re.compile(rf"(?is).*{SECRET_NAME}")
USER_IN_URL: Final = re.compile(r"(?<=://)[^/@\s]*:[^/@\s]*(?=@)")
"""User and password in a URL."""


def is_secret_name(name: str) -> bool:
    """Return whether a variable or key of this name holds a secret.

    >>> is_secret_name("studio_api_key"), is_secret_name("password_file"), is_secret_name("bypass")
    (True, False, False)
    """
    return _NAME.fullmatch(name) is not None
