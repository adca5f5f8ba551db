"""What a plan deletes or removes, or a run did, by name, as it is reported afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Final

from msgspec import Meta, Struct, structs

from msauto.aspects import deletions_of
from msauto.model.plan import Target
from msauto.report.plan_view import Deletion, DeletionGroup, deletion_groups, names_of_servers
from msauto.report.sanitizing import show
from msauto.report.texts import folder_note, plural

_MOST_KEPT: Final = 100
"""How many titles are kept by name."""


class Loss(Struct, frozen=True, kw_only=True):
    """Titles of the same servers of which the same is lost."""

    what: Annotated[str, Meta(description="such as deleted, or would delete")]
    servers: Annotated[tuple[str, ...], Meta(description="their names in the inventory")]
    database: Annotated[str, Meta(description="their media database; empty for RSS channels")]
    names: Annotated[tuple[str, ...], Meta(description="the titles, visible: the first 100 in all")]
    count: Annotated[int, Meta(ge=1, description="how many titles")]
    about: Annotated[str, Meta(description="what is known of all, such as the folder")] = ""

    @property
    def place(self) -> str:
        """The servers and the database; visible."""
        return " · ".join(filter(None, (names_of_servers(self.servers), show(self.database))))

    @property
    def line(self) -> str:
        """What is lost, in one line; visible."""
        number = f"{self.count}: " if self.count > 1 else ""
        names = ", ".join(self.names)
        more = self.count - len(self.names)
        if more:
            names = f"{names} and {more} more"
        return f"{self.what} {self.place} · {number}{names} {self.about}".rstrip()


Losses = tuple[Loss, ...]


def losses_of(targets: Iterable[Target], *, would: bool = False) -> Losses:
    """Return what is lost with targets; ``would``: nothing was done."""
    deletions = []
    removals: dict[tuple[str, str, int, str], list[Deletion]] = {}
    for target in targets:
        if not target.loses:
            continue
        deleted = [Deletion(target, change) for change in deletions_of(target)]
        deletions += deleted
        if not deleted:
            lost = sum(change.losses for change in target.changes)
            alike = target.database, target.name, lost, folder_note(target)
            removals.setdefault(alike, []).append(Deletion(target, target.changes[0]))
    losses = []
    for group in deletion_groups(deletions, whole=False):
        losses.append(_loss("would delete" if would else "deleted", group))
    for (_, name, lost, folder), removed in removals.items():
        what = "would remove" if would else "removed"
        loss = _loss(f"{what} {plural(lost, 'item')} of", DeletionGroup(tuple(removed)))
        losses.append(structs.replace(loss, names=(show(name),), about=folder))
    return tuple(_first_of(losses, _MOST_KEPT))


def _loss(what: str, group: DeletionGroup) -> Loss:
    first = group.deletions[0].target
    servers = dict.fromkeys(deletion.target.server for deletion in group.deletions)
    names = tuple(group.named)
    return Loss(
        what=what,
        servers=tuple(servers),
        database=first.database,
        names=names,
        count=len(names),
        about=", ".join(group.common_facts),
    )


def _first_of(losses: Iterable[Loss], most: int) -> Iterator[Loss]:
    """Yield losses with as many names as are asked for in all."""
    for loss in losses:
        yield structs.replace(loss, names=loss.names[:most])
        most = max(0, most - len(loss.names))


def loss_lines(losses: Iterable[Loss], most: int = _MOST_KEPT) -> Iterator[str]:
    """Yield lines with so many titles, and how many more are lost; visible."""
    more = 0
    for loss in _first_of(losses, most):
        if loss.names:
            yield loss.line
        else:
            more += loss.count
    if more:
        yield f"and {more} more"
