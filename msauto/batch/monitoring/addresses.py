"""The addresses of a batch file, which may be secret, and how they are shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from msauto.batch.batch_file import BatchFile
from msauto.playbook.inventory.server_block import secret_of_file, secret_of_keyring
from msauto.playbook.schema.batch import SecretSource
from msauto.playbook.yaml.document import SourceNode
from msauto.secrets.redaction import Secrets

_SHORTEST_PART = 4


@dataclass(frozen=True, slots=True)
class MessageAddress:
    """Where to send messages: a text, or the source of a secret one, and its place in the batch file."""

    value: str | SecretSource
    node: SourceNode

    @property
    def shown(self) -> str:
        """What may be shown of it: the source of a secret, else the scheme: other parts of a URL may be secret."""
        if isinstance(self.value, SecretSource):
            ((kind, name),) = self.value.model_dump(exclude_none=True).items()
            return f"{kind} {name}"
        scheme = re.match(r"[A-Za-z][A-Za-z0-9+.-]*(?=://)", self.value)
        return f"{scheme[0] if scheme else ''}://…"

    def read(self, batch: BatchFile, env: Mapping[str, str]) -> str:
        """Return the address itself; raises :class:`InputError`, which does not show it."""
        source = self.value
        if not isinstance(source, SecretSource):
            return str(source)
        if source.env is not None:
            text = env.get(source.env, "")
            if not text:
                remedy = "set it in the environment of the scheduled run"
                raise self.node.child("env").error(f"the environment variable {source.env} is not set", remedy)
            return text
        if source.keyring is not None:
            return secret_of_keyring(source.keyring, batch.name, self.node.child("keyring")).reveal().strip()
        if source.file is not None:
            return secret_of_file(source.file, self.node.child("file")).reveal().strip()
        folder = env.get("CREDENTIALS_DIRECTORY")
        if folder is None:
            remedy = "systemd sets it: see `msauto schedule print --for systemd`"
            raise self.node.child("credential").error("$CREDENTIALS_DIRECTORY is not set", remedy)
        path = Path(folder).absolute() / str(source.credential)
        return secret_of_file(str(path), self.node.child("credential")).reveal().strip()


def secrets_of(address: str) -> Secrets:
    """Return an address and its parts as secrets: messages of libraries repeat some of them."""
    parts = re.split(r"[/:@?&=,]+", address.partition("://")[2])
    return Secrets([address, *(part for part in parts if len(part) >= _SHORTEST_PART)])
