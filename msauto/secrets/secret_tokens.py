"""Tokens: what the ledger keeps in place of a secret that it must recognize again.

An entry that contains a secret (a field that the server does not report, a command that runs once) gets a slow, salted
hash of it. Planning sees the secret again only while the playbooks still contain it.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from typing import Final

from msauto.model.plan import Json, TargetId
from msauto.model.ports import Journal, Memory
from msauto.secrets.redaction import TOKEN_PATTERN, Secrets
from msauto.secrets.redactor import map_texts

SALT: Final = TargetId("", "", "database", "")
"""The target under which the salt is stored; no server has it."""
_ITEM: Final = "salt"
_WORK: Final = 2**14
"""Cost of scrypt: about 0.1 seconds and 16 MB for each guess."""


class SecretTokenMemory:
    """A memory that stores tokens instead of secrets. ``known`` are the secrets found so far."""

    def __init__(self, memory: Memory, known: Secrets) -> None:
        self._memory = memory
        self._known = known
        self._salt = ""
        self._tokens: dict[str, str] = {}

    def recall(self, target: TargetId) -> Mapping[str, Json]:
        """Return the stored items, with the secrets of known tokens; items with unknown tokens are left out."""
        items = self._memory.recall(target)
        if not any(_has_token(part) for part in items.items()):
            return items
        revealed = {self._reveal_text(item): self._reveal(value) for item, value in items.items()}
        return {item: value for item, value in revealed.items() if value is not None}

    def remember(self, target: TargetId, items: Mapping[str, Json]) -> None:
        """Store items, with tokens for secrets."""
        self._memory.remember(
            target, {self.conceal(name): map_texts(value, self.conceal, self.conceal) for name, value in items.items()}
        )

    def forget_assets(self, server: str, database: str, prefix: str) -> None:
        """Forget items of all assets of a database; ``prefix`` contains no secret."""
        self._memory.forget_assets(server, database, prefix)

    def pending(self, server: str) -> frozenset[tuple[str, str]]:
        """Return the assets of a server that have something pending."""
        return self._memory.pending(server)

    def settle_salt(self, journal: Journal) -> None:
        """Store the salt before anything else; of two first runs at once, the later one takes that of the earlier.

        With a salt of its own, its tokens would not be recognized, and a command that runs once would run twice.
        """
        with journal.together(alone=True):
            self._find_salt()

    def conceal(self, text: str) -> str:
        """Return a text with a token for each secret in it; the same secret always has the same token."""
        for secret in sorted(self._known.texts, key=len, reverse=True):
            if secret in text:
                text = text.replace(secret, self._token(secret))
        return self._known.redact_except_tokens(text)  # an encoded secret, as in a path, need not be recognized

    def _reveal_text(self, text: str) -> str:
        if TOKEN_PATTERN.search(text) is None:
            return text
        by_token = {self._token(secret): secret for secret in self._known.texts}
        return TOKEN_PATTERN.sub(lambda match: by_token.get(match[0], match[0]), text)

    def _reveal(self, value: Json) -> Json:
        """Return a value as it was stored, without the parts whose secret is not known any more."""
        if isinstance(value, str):
            text = self._reveal_text(value)
            return None if TOKEN_PATTERN.search(text) else text
        if isinstance(value, dict):
            found = {self._reveal_text(name): self._reveal(each) for name, each in value.items()}
            return {name: each for name, each in found.items() if each is not None or value.get(name, "") is None}
        if isinstance(value, list):
            items = [self._reveal(each) for each in value]
            return None if None in items and None not in value else items
        return value

    def _token(self, secret: str) -> str:
        if secret not in self._tokens:
            salt = bytes.fromhex(self._salt or self._find_salt())
            digest = hashlib.scrypt(secret.encode("utf-8", "surrogatepass"), salt=salt, n=_WORK, r=8, p=1, dklen=16)
            self._tokens[secret] = f"***{{{digest.hex()}}}"
        return self._tokens[secret]

    def _find_salt(self) -> str:
        kept = self._memory.recall(SALT).get(_ITEM)
        if not isinstance(kept, str):
            kept = secrets.token_hex(16)
            self._memory.remember(SALT, {_ITEM: kept})
        self._salt = kept
        return kept


def _has_token(value: object) -> bool:
    if isinstance(value, str):
        return TOKEN_PATTERN.search(value) is not None
    if isinstance(value, dict):
        return any(map(_has_token, value.items()))
    return isinstance(value, list | tuple) and any(map(_has_token, value))
