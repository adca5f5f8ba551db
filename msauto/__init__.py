"""Ansible-style automation for the media servers of broadcasters: the public Python API.

::

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

from msauto.version import __version__

TYPE_CHECKING = False  # not from typing: a Ctrl-C while that is loaded is not handled yet
if TYPE_CHECKING:
    from typing import Any

    from msauto.errors import (
        DownloadError,
        InDoubtError,
        MsautoError,
        NotFoundError,
        NotSentError,
        RefusedError,
        RejectedError,
        ServerError,
        UnreachableError,
        UnreadableError,
        UnsupportedError,
    )
    from msauto.interface.dialect import Dialect
    from msauto.model.live import (
        Asset,
        Database,
        Entry,
        Link,
        Listing,
        MamAsset,
        Marker,
        RssChannel,
        RssItem,
        Segment,
    )
    from msauto.model.plan import Address, Request
    from msauto.model.ports import Answer
    from msauto.model.server import Auth, Secret, ServerSpec, Timeouts, Tls
    from msauto.server.client import AsyncMediaServer
    from msauto.server.sync import MediaServer

__all__ = [
    "Address",
    "Answer",
    "Asset",
    "AsyncMediaServer",
    "Auth",
    "Database",
    "Dialect",
    "DownloadError",
    "Entry",
    "InDoubtError",
    "Link",
    "Listing",
    "MamAsset",
    "Marker",
    "MediaServer",
    "MsautoError",
    "NotFoundError",
    "NotSentError",
    "RefusedError",
    "RejectedError",
    "Request",
    "RssChannel",
    "RssItem",
    "Secret",
    "Segment",
    "ServerError",
    "ServerSpec",
    "Timeouts",
    "Tls",
    "UnreachableError",
    "UnreadableError",
    "UnsupportedError",
    "__version__",
]

_HOMES = {
    "msauto.model.live": "Asset Database Entry Link Listing MamAsset Marker RssChannel RssItem Segment",
    "msauto.model.plan": "Address Request",
    "msauto.model.ports": "Answer",
    "msauto.interface.dialect": "Dialect",
    "msauto.model.server": "Auth Secret ServerSpec Timeouts Tls",
    "msauto.server.sync": "MediaServer",
    "msauto.server.client": "AsyncMediaServer",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Load a public name from its module (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module 'msauto' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF.get(name, "msauto.errors")), name)


def __dir__() -> list[str]:
    return sorted(__all__)
