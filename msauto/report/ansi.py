"""Colour for terminals: the only place that writes escape sequences. Whether to colour is the caller's to say."""

from __future__ import annotations

from typing import Final

from msauto.model.plan import Action

BOLD: Final = "1"
DIM: Final = "2"
RED: Final = "31"
GREEN: Final = "32"
YELLOW: Final = "33"
MAGENTA: Final = "35"
CYAN: Final = "36"

SIGNS: Final[dict[Action, str]] = {"add": "+", "change": "~", "delete": "-", "run": "!"}
COLOURS: Final[dict[Action, str]] = {"add": GREEN, "change": YELLOW, "delete": RED, "run": CYAN}


def paint(text: str, style: str, *, colour: bool) -> str:
    """Colour one line of text that is visible already; nothing for an empty one."""
    return f"\x1b[{style}m{text}\x1b[0m" if colour and text else text
