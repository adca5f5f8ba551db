"""What the ledger keeps in place of a secret that the server does not report: a slow, salted hash.

So the same secret is not written again in every run, and another one is.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Mapping
from typing import Final

from msauto.model.plan import Json, TargetId
from msauto.model.ports import Journal, Memory
from msauto.secrets.redaction import Secrets
from msauto.secrets.redactor import map_texts

SALT: Final = TargetId("", "", "database", "")
"""The target under which the salt is stored; no server has it."""
_HASH: Final = re.compile(r"\*\*\*\{[0-9a-f]{32}\}")
_WORK: Final = 2**14
"""Cost of scrypt: about 0.1 seconds and 16 MB for each guess."""


class SecretMemory:
    """A memory that stores hashes of secret texts. ``known`` are the secrets found so far; items name no secret."""

    def __init__(self, memory: Memory, known: Secrets) -> None:
        self._memory = memory
        self._known = known
        self._hashes: dict[str, str] = {}

    def recall(self, target: TargetId) -> Mapping[str, Json]:
        """Return the stored items; those with a secret that is not known any more are left out."""
        items = self._memory.recall(target)
        if not _has_hash(items):
            return items
        texts = {self._hash(text): text for text in self._known.texts}
        found = {item: map_texts(value, lambda text: texts.get(text, text)) for item, value in items.items()}
        return {item: value for item, value in found.items() if not _has_hash(value)}

    def remember(self, target: TargetId, items: Mapping[str, Json]) -> None:
        """Store items, with hashes of secret texts."""
        self._memory.remember(target, {item: map_texts(value, self._without_secret) for item, value in items.items()})

    def forget_assets(self, server: str, database: str, prefix: str) -> None:
        """Forget items of all assets of a database."""
        self._memory.forget_assets(server, database, prefix)

    def pending(self, server: str) -> frozenset[tuple[str, str]]:
        """Return the assets of a server that have something pending."""
        return self._memory.pending(server)

    def settle_salt(self, journal: Journal) -> None:
        """Store the salt before anything else; of two first runs at once, the later one takes that of the earlier."""
        with journal.together(alone=True):
            if "salt" not in self._memory.recall(SALT):
                self._memory.remember(SALT, {"salt": secrets.token_hex(16)})

    def _without_secret(self, text: str) -> str:
        return self._hash(text) if self._known.occurs_in(text) else text

    def _hash(self, text: str) -> str:
        if text not in self._hashes:
            salt = bytes.fromhex(str(self._memory.recall(SALT)["salt"]))
            digest = hashlib.scrypt(text.encode("utf-8", "surrogatepass"), salt=salt, n=_WORK, r=8, p=1, dklen=16)
            self._hashes[text] = f"***{{{digest.hex()}}}"
        return self._hashes[text]


def _has_hash(value: object) -> bool:
    return _HASH.search(json.dumps(value)) is not None
