"""Ansible-style automation for the media servers of broadcasters: the public Python API.

Playbooks are loaded, planned and applied as on the command line (:mod:`msauto.aio` has the same to await)::

    import msauto

    play = msauto.load("news.yml", inventory="inventory.yml", extra_vars={"season": 3})
    plan = msauto.plan(play)
    print(plan.to_text())
    result = msauto.apply(plan, allow_delete=2, observer=print)

The client reads and writes single things::

    from msauto import MediaServer

    with MediaServer("http://studio-a:7901") as server:
        clip = server.asset("NEWS", "Evening News")
        print(clip.frames, [marker.fields["title"] for marker in clip.markers])
        server.set_field("NEWS", "Evening News", "comment", "Ready")

Each name is loaded on first use, so that ``import msauto`` is fast. The client also works on systems without file locks
(Windows), where runs that write do not.
"""

from __future__ import annotations

from importlib import import_module

from msauto.version import __version__ as __version__

TYPE_CHECKING = False  # not from typing: a Ctrl-C while that is loaded is not handled yet
if TYPE_CHECKING:
    from typing import Any

    from msauto import aio as aio
    from msauto.api.export import Export as Export
    from msauto.api.loading import Loaded as Loaded
    from msauto.api.values import Plan as Plan
    from msauto.api.values import Result as Result
    from msauto.blocking import apply as apply
    from msauto.blocking import export as export
    from msauto.blocking import history as history
    from msauto.blocking import load as load
    from msauto.blocking import plan as plan
    from msauto.blocking import rehearse as rehearse
    from msauto.blocking import undo as undo
    from msauto.errors import AddressError as AddressError
    from msauto.errors import DownloadError as DownloadError
    from msauto.errors import InDoubtError as InDoubtError
    from msauto.errors import InputError as InputError
    from msauto.errors import LedgerError as LedgerError
    from msauto.errors import LockedError as LockedError
    from msauto.errors import MsautoError as MsautoError
    from msauto.errors import NotFoundError as NotFoundError
    from msauto.errors import NotSentError as NotSentError
    from msauto.errors import PlanningError as PlanningError
    from msauto.errors import RefusedError as RefusedError
    from msauto.errors import RejectedError as RejectedError
    from msauto.errors import ServerError as ServerError
    from msauto.errors import UnreachableError as UnreachableError
    from msauto.errors import UnreadableError as UnreadableError
    from msauto.errors import UnsupportedError as UnsupportedError
    from msauto.model.live import Asset as Asset
    from msauto.model.live import Database as Database
    from msauto.model.live import Entry as Entry
    from msauto.model.live import Link as Link
    from msauto.model.live import Listing as Listing
    from msauto.model.live import MamAsset as MamAsset
    from msauto.model.live import Marker as Marker
    from msauto.model.live import RssChannel as RssChannel
    from msauto.model.live import RssItem as RssItem
    from msauto.model.live import Segment as Segment
    from msauto.model.plan import Address as Address
    from msauto.model.plan import Change as Change
    from msauto.model.plan import Request as Request
    from msauto.model.plan import SkippedTarget as SkippedTarget
    from msauto.model.ports import Answer as Answer
    from msauto.model.result import RunSummary as RunSummary
    from msauto.model.server import Auth as Auth
    from msauto.model.server import Dialect as Dialect
    from msauto.model.server import Secret as Secret
    from msauto.model.server import ServerSpec as ServerSpec
    from msauto.model.server import Timeouts as Timeouts
    from msauto.model.server import Tls as Tls
    from msauto.plugins.simulator.rehearsal import Rehearsal as Rehearsal
    from msauto.server.client import AsyncMediaServer as AsyncMediaServer
    from msauto.server.sync import MediaServer as MediaServer

_HOMES = {
    "msauto.blocking": "apply export history load plan rehearse undo",
    "msauto.api.export": "Export",
    "msauto.api.loading": "Loaded",
    "msauto.plugins.simulator.rehearsal": "Rehearsal",
    "msauto.api.values": "Plan Result",
    "msauto.errors": "AddressError DownloadError InDoubtError InputError LedgerError LockedError MsautoError "
    "NotFoundError NotSentError PlanningError RefusedError RejectedError ServerError UnreachableError UnreadableError "
    "UnsupportedError",
    "msauto.model.live": "Asset Database Entry Link Listing MamAsset Marker RssChannel RssItem Segment",
    "msauto.model.plan": "Address Change Request SkippedTarget",
    "msauto.model.result": "RunSummary",
    "msauto.model.ports": "Answer",
    "msauto.model.server": "Auth Dialect Secret ServerSpec Timeouts Tls",
    "msauto.server.sync": "MediaServer",
    "msauto.server.client": "AsyncMediaServer",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}
__all__ = ["__version__", "aio"]
__all__ += list(_HOME_OF)


def __getattr__(name: str) -> Any:
    """Load a public name from its module (PEP 562)."""
    if name == "aio":
        return import_module("msauto.aio")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'msauto' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
