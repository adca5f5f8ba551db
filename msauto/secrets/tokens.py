"""Stand-ins: what the ledger keeps in place of a secret that it must know again.

A memory that held a secret (a field that the server does not report, a command that runs once) holds a slow hash of it
instead, with a salt that the ledger keeps. Planning sees the secret again only where the playbooks still say it.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Mapping
from typing import Final

from msauto.model.plan import Json, TargetId
from msauto.model.ports import Journal, Memory
from msauto.secrets.taint import STAND_IN, Secrets

SALT: Final = TargetId("", "", "database", "")
"""The target that the salt is remembered under: no server has it."""
_ITEM: Final = "salt"
_WORK: Final = 2**14
"""Of scrypt: some 0.1 seconds and 16 MB for each guess."""


class SecretTokenMemory:
    """A memory that keeps no secret. ``known`` are those that have come up so far: evaluation is late."""

    def __init__(self, memory: Memory, known: Callable[[], Secrets]) -> None:
        self._memory = memory
        self._known = known
        self._salt = ""
        self._stand_ins: dict[str, str] = {}

    def recall(self, target: TargetId) -> Mapping[str, Json]:
        """Return the items that we remember, with the secrets that are known; those that are not are forgotten."""
        items = self._memory.recall(target)
        if not any(_has_stand_in(part) for part in items.items()):
            return items
        revealed = {self._reveal(item): self._reveal_all(value) for item, value in items.items()}
        return {item: value for item, value in revealed.items() if value is not None}

    def remember(self, target: TargetId, items: Mapping[str, Json]) -> None:
        """Keep items, with stand-ins for secrets."""
        self._memory.remember(target, {self.conceal(item): self._conceal_all(value) for item, value in items.items()})

    def forget_assets(self, server: str, database: str, prefix: str) -> None:
        """Forget items of all assets of a database; ``prefix`` holds no secret."""
        self._memory.forget_assets(server, database, prefix)

    def pending(self, server: str) -> frozenset[tuple[str, str]]:
        """Return the assets of a server of which something is pending."""
        return self._memory.pending(server)

    def settle_salt(self, journal: Journal) -> None:
        """Find the salt before anything is kept: of two first runs at once, the later takes that of the earlier.

        With a salt of its own, what it keeps would not be known again, and a command that runs once would run twice.
        """
        with journal.together():
            self._find_salt()

    def conceal(self, text: str) -> str:
        """Return a text with a stand-in for each secret in it; the same secret always has the same."""
        for known in self._known().standing_in(text):
            if known in text:  # unless it was a part of one before
                text = text.replace(known, self._stand_in(known))
        return self._known().hide_coded(text)  # one that is coded, in a path say, need not be known again

    def _conceal_all(self, value: Json) -> Json:
        if isinstance(value, str):
            return self.conceal(value)
        if isinstance(value, dict):
            return {self.conceal(name): self._conceal_all(each) for name, each in value.items()}
        return [self._conceal_all(each) for each in value] if isinstance(value, list) else value

    def _reveal(self, text: str) -> str:
        if STAND_IN.search(text) is None:
            return text
        by_stand_in = {self._stand_in(known): known for known in self._known().texts}
        return STAND_IN.sub(lambda found: by_stand_in.get(found[0], found[0]), text)

    def _reveal_all(self, value: Json) -> Json:
        """Return a value as it was remembered; what holds a secret that nobody says any more is left out."""
        if isinstance(value, str):
            text = self._reveal(value)
            return None if STAND_IN.search(text) else text
        if isinstance(value, dict):
            found = {self._reveal(name): self._reveal_all(each) for name, each in value.items()}
            return {name: each for name, each in found.items() if each is not None or value.get(name, "") is None}
        if isinstance(value, list):
            items = [self._reveal_all(each) for each in value]
            return None if None in items and None not in value else items
        return value

    def _stand_in(self, text: str) -> str:
        if text not in self._stand_ins:
            salt = bytes.fromhex(self._salt or self._find_salt())
            digest = hashlib.scrypt(text.encode("utf-8", "surrogatepass"), salt=salt, n=_WORK, r=8, p=1, dklen=16)
            self._stand_ins[text] = f"***{{{digest.hex()}}}"
        return self._stand_ins[text]

    def _find_salt(self) -> str:
        kept = self._memory.recall(SALT).get(_ITEM)
        if not isinstance(kept, str):
            kept = secrets.token_hex(16)
            self._memory.remember(SALT, {_ITEM: kept})
        self._salt = kept
        return kept


def _has_stand_in(value: object) -> bool:
    if isinstance(value, str):
        return STAND_IN.search(value) is not None
    if isinstance(value, dict):
        return any(map(_has_stand_in, value.items()))
    return isinstance(value, list | tuple) and any(map(_has_stand_in, value))
