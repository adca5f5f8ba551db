"""One command call, and how a command reads its parameters."""

from __future__ import annotations

import re
from dataclasses import dataclass

from msauto.simulator.commands.positions import parse_frames
from msauto.simulator.dialect import SimDialect
from msauto.simulator.http.answers import RefusalError
from msauto.simulator.http.wire import HttpRequest
from msauto.simulator.state.state import ServerState, SimClip, SimDatabase, SimEntry

# int() also accepts `1_000`, ` 7` and Arabic digits.
_WHOLE = re.compile(r"-?[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class CommandCall:
    """One command on one entry. `restore_seconds` is the duration of a restore."""

    state: ServerState
    database: SimDatabase
    entry: SimEntry
    request: HttpRequest
    dialect: SimDialect
    restore_seconds: float = 0.0

    @property
    def clip(self) -> SimClip:
        """The clip of the entry."""
        return self.entry.clip

    @property
    def origin(self) -> int:
        """The frame of the file where positions start to count."""
        return self.entry.first_frame if self.dialect.position_origin == "in" else 0

    def text(self, name: str) -> str:
        """Return a required parameter."""
        value = self.request.param(name)
        if value is None:
            raise RefusalError(400, f"{name} is missing")
        return value

    def integer(self, name: str) -> int:
        """Return a required whole number."""
        return integer_value(name, self.text(name))

    def frames(self, name: str) -> int:
        """Return a required position or duration in frames."""
        try:
            return parse_frames(self.text(name), self.clip.rate)
        except ValueError as problem:
            raise RefusalError(400, f"{name}: {problem}") from None


def integer_value(name: str, value: str) -> int:
    """Text → int; the refusal names the parameter."""
    if _WHOLE.fullmatch(value) is None:
        raise RefusalError(400, f"{name} is not a number: {value}")
    return int(value)
