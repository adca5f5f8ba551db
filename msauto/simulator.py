"""The embedded media server, under the name that users' tests import: ``from msauto.simulator import Simulator``."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msauto.plugins.simulator.embedded import Simulator

__all__ = ["Simulator"]


def __getattr__(name: str) -> Any:
    """Load a name of the embedded server from its plugin (PEP 562)."""
    return getattr(import_module("msauto.plugins.simulator.embedded"), name)
