"""What a plan deletes or removes, or a run did, by name, as it is reported afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from msauto.aspects import deletions_of
from msauto.model.plan import Target
from msauto.report.plan_view import Deletion, deletion_groups, place_of
from msauto.report.sanitizing import show
from msauto.report.texts import folder_note, plural

_MOST_NAMED: Final = 100


class Loss(Struct, frozen=True):
    """Titles of the same servers of which the same is lost; visible.

    Attributes:
        what: such as: deleted oslo · NEWS
        names: the titles
        about: what is known of all, such as the folder
    """

    what: str
    names: tuple[str, ...]
    about: str


def losses_of(targets: Iterable[Target], *, would: bool = False) -> Iterator[Loss]:
    """Yield what is lost with targets; ``would``: nothing was done."""
    deletions = []
    removed: dict[tuple[int, str, str, str], list[str]] = {}
    for target in targets:
        deleted = [Deletion(target, change) for change in deletions_of(target)]
        deletions += deleted
        lost = sum(change.losses for change in target.changes)
        if lost and not deleted:
            alike = lost, target.database, target.name, folder_note(target)
            removed.setdefault(alike, []).append(target.server)
    verb = "would delete" if would else "deleted"
    for group in deletion_groups(deletions, whole=False):
        about = ", ".join(group.common_facts)
        yield Loss(f"{verb} {group.place}", tuple(group.named), about)
    verb = "would remove" if would else "removed"
    for (lost, database, name, folder), servers in removed.items():
        what = f"{verb} {plural(lost, 'item')} of"
        yield Loss(f"{what} {place_of(servers, database)}", (show(name),), folder)


def loss_lines(losses: Iterable[Loss], most: int = _MOST_NAMED) -> Iterator[str]:
    """Yield lines with so many titles, and how many more are lost."""
    more = 0
    for loss in losses:
        names = loss.names[:most]
        most -= len(names)
        more += len(loss.names) - len(names)
        number = f"{len(names)}: " if len(names) > 1 else ""
        if names:
            yield f"{loss.what} · {number}{', '.join(names)} {loss.about}".rstrip()
    if more:
        yield f"and {more} more"
