"""Before a link goes by its title: its title must lead to this one link: nothing else tells a server which is meant.

The interface has no way to remove a link; ``link_delete: by_title`` sends a DELETE of the link's title (field notes).
Two links of one title, or another clip of that title, and the wrong thing would go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msauto.model.live import Asset, Link, parse_folder
from msauto.model.plan import Address, Change
from msauto.model.ports import Reader
from msauto.planning.compare import plain
from msauto.planning.draft import refuse

_IDENTITY = ("orig_name", "create_time", "frames")


async def check_unlinks(reader: Reader, database: str, asset: Asset, changes: Iterable[Change]) -> None:
    """Raise ``PlanningError`` for the first link that goes, and whose title leads to more or to something else."""
    going = [change for change in changes if change.aspect == "link" and change.action == "delete"]
    if not going:
        return
    links = await reader.read_links(database, asset)
    for change in going:
        title = parse_folder(change.key)[-1]
        why = why_ambiguous(title, links)
        answer = await reader.read_asset(database, Address(title)) if why is None else None
        if answer is not None and _is_another(asset, answer):
            why = "another clip answers to its title: that one would be deleted"
        if why is not None:
            raise refuse(f"the link {change.key} cannot be removed: {why}", change.source, "remove it by hand")


def why_ambiguous(title: str, links: Sequence[Link]) -> str | None:
    """Return why deleting by a title may take another link of the asset; ``None`` where there is just one."""
    count = sum(plain(link.title) == plain(title) for link in links)
    return f"{count} links of the asset bear its title, and the wrong one may go" if count > 1 else None


def _is_another(asset: Asset, answer: Asset) -> bool:
    """Tell whether two answers are surely of two clips."""
    known = [
        (asset.attributes[name], answer.attributes[name])
        for name in _IDENTITY
        if name in asset.attributes and name in answer.attributes
    ]
    files = [(asset.hires, answer.hires)] if asset.hires and answer.hires else []
    return any(one != other for one, other in (*known, *files))
