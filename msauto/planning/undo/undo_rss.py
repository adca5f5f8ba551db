"""What takes the changes of an RSS channel back. Of a deleted item the file's name is gone: it is made up anew."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from msauto.diffing.comparison import Want, plain
from msauto.interface.rss_files import default_file, is_file_name
from msauto.model.desired import DesiredChannel, DesiredRssItem, Sourced, TaskSource
from msauto.model.facts import Facts
from msauto.model.plan import Json
from msauto.model.server import ServerSpec
from msauto.verification.expectations import mapping

if TYPE_CHECKING:
    from msauto.planning.undo.undo import AppliedChange

_ENDINGS = (".txt", ".xml")


@dataclass(frozen=True, slots=True)
class ChannelUndo:
    """The ``evaluate`` of an intent that takes back what a run did to one channel."""

    made: tuple[AppliedChange, ...]
    spec: ServerSpec
    source: TaskSource

    def __call__(self, facts: Facts) -> DesiredChannel:
        """Return the items as they were, each with what it must still say to be touched."""
        del facts  # a channel has none
        items = tuple(Sourced(self._item(one), self.source) for one in self.made)
        still = {one.change.key: _still(one) for one in self.made}
        return DesiredChannel(self.source, items, still=still, notes=tuple(self._notes()))

    def _item(self, one: AppliedChange) -> DesiredRssItem:
        guid, before = one.change.key, mapping(one.change.before)
        if one.change.action == "add":
            return DesiredRssItem(guid, _file(one), present=False)
        if self._is_text(one):
            return DesiredRssItem(guid, _file(one), text=_text(before))
        fields = {name: str(value) for name, value in before.items() if value is not None}
        return DesiredRssItem(guid, _file(one), item=fields)

    def _is_text(self, one: AppliedChange) -> bool:
        return not self.spec.dialect.sends_document(_file(one))

    def _notes(self) -> Iterator[str]:
        for one in self.made:
            lost = [name for name in ("link", "pubDate") if mapping(one.change.before).get(name)]
            if lost and one.change.action != "add" and self._is_text(one):
                yield f"item {one.change.key} comes back without its {' and '.join(lost)}: its file is a text"


def _still(one: AppliedChange) -> Json:
    """Return what the item must say for it to be touched; ``None``: it must not be there."""
    puts = [request for request in one.requests if request.method == "PUT"]
    if not puts:
        return None
    want = mapping(puts[-1].expect[0].desired)
    return {name: want[name] for name in ("text", "item") if name in want}


def _file(one: AppliedChange) -> str:
    """Return the name of the file: as it was put, else one that shows under the guid it had."""
    put = next((request.path for request in one.requests if request.method == "PUT"), None)
    if put is not None:
        return unquote(put.rpartition("/")[2])
    guid = one.change.key
    return guid if guid.lower().endswith(_ENDINGS) and is_file_name(guid) else default_file(guid, text=False)


def _text(before: Want) -> str:
    """Return the text that shows as this title and description: the one may hold the other."""
    title, description = str(before.get("title") or ""), str(before.get("description") or "")
    if not description or plain(description).startswith(plain(title)):
        return description or title
    return f"{title}\n{description}"
