"""Where the secrets of a run come from: the workers of a cluster read them there themselves.

A secret has a source if its text is exactly that of an environment variable, of a file, or of a text that is tagged
``!secret`` in a YAML file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta, Struct


class SecretReference(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where a secret can be read again."""

    kind: Annotated[
        Literal["env", "file", "yaml"],
        Meta(description="an environment variable, the text of a file, or a text tagged !secret in a YAML file"),
    ]
    name: Annotated[str, Meta(description="the variable, or the path of the file")]
    place: Annotated[tuple[str | int, ...], Meta(description="the keys and indices that lead to the tagged text")] = ()

    def __str__(self) -> str:
        """Describe the reference in a message."""
        if self.kind == "env":
            return f"the environment variable {self.name}"
        return f"{'.'.join(map(str, self.place))} in {self.name}" if self.kind == "yaml" else f"the file {self.name}"


class SecretSources:
    """The references that are known for texts, and the texts that are composed of plain text and such secrets."""

    def __init__(self) -> None:
        self._references: dict[str, dict[SecretReference, None]] = {}

    def note(self, text: str, reference: SecretReference) -> None:
        """Note that a text was read, which may be or become a secret."""
        if len(text.strip()) >= 4:  # a shorter one cannot be a secret
            self._references.setdefault(str(text), {})[reference] = None

    def of(self, text: str) -> tuple[SecretReference, ...]:
        """Return where a text was read; empty if it was computed."""
        return tuple(self._references.get(text, ()))

    def copy(self) -> SecretSources:
        """Return a copy."""
        copy = SecretSources()
        copy.merge(self)
        return copy

    def since(self, before: SecretSources) -> SecretSources:
        """Return what was added after a copy was made."""
        found, earlier = SecretSources(), dict(before.noted())
        for text, references in self.noted():
            if references != earlier.get(text):
                found._references[text] = dict.fromkeys(references)
        return found

    def merge(self, other: SecretSources) -> None:
        """Add what was noted elsewhere."""
        for text, references in other.noted():
            self._references.setdefault(text, {}).update(dict.fromkeys(references))

    def noted(self) -> Iterator[tuple[str, tuple[SecretReference, ...]]]:
        """Yield each text that was read, and where."""
        return ((text, tuple(references)) for text, references in self._references.items())
