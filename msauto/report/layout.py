"""How a plan or a result is shown; each form uses what applies to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from msauto.errors import MsautoError

if TYPE_CHECKING:
    from msauto.report.html.stills import StillPlace


@dataclass(frozen=True, slots=True)
class Layout:
    """How to show a plan or a result.

    ``verbosity`` 1 unfolds it, shows values whole and adds the requests; 2 adds the source of each change. ``width``:
    columns of the terminal. ``ascii_only``: no other signs than ASCII, except in titles. ``summary``: counts,
    deletions and refusals alone. ``name``: the playbook, by which CI finds its comment again. ``keep_going``: targets
    in error are left out. ``error``: why the command ends without applying the plan. ``stills``: pictures of clips.
    """

    colour: bool = False
    verbosity: int = 0
    width: int = 80
    ascii_only: bool = False
    summary: bool = False
    name: str = "plan"
    keep_going: bool = False
    error: MsautoError | None = None
    stills: Mapping[StillPlace, bytes] = field(default_factory=dict)


PLAIN: Final = Layout()
