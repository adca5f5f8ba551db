"""Sentences about groups of targets that all forms share: headings, folders, names, deletions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from msauto.model.plan import Target
from msauto.report import value_texts
from msauto.report.grouping import Block, Level, NamedTargets, PlannedChange
from msauto.report.name_ranges import NameRange, name_ranges
from msauto.report.sanitizing import show
from msauto.report.sentences import KINDS, count_deletions, folder_note, plural, target_heading

_LEVELS: Final[dict[Level, str]] = {
    "alike": "with the same changes",
    "similar": "with changes of the same kinds",
    "other": "with other changes",
}


def block_heading(block: Block) -> str:
    """Return the heading of a block: that of its target, or how many targets it has and where."""
    if block.level == "alone":
        return target_heading(block.targets[0])
    return f"{targets_heading(block.targets)} {_LEVELS[block.level]}"


def targets_heading(targets: Sequence[Target]) -> str:
    """Return the server, the database and the number of targets, such as ``studio-a · NEWS · 300 assets``."""
    kinds = {target.kind for target in targets}
    noun = KINDS[targets[0].kind] if len(kinds) == 1 else "target"
    servers = {target.server for target in targets}
    databases = {target.database for target in targets if target.database}
    places = [show(min(names)) if len(names) == 1 else plural(len(names), what)
              for names, what in ((servers, "server"), (databases, "database")) if names]  # fmt: skip
    return " · ".join([*places, plural(len(targets), noun)])


def folders_note(block: Block) -> str:
    """Return the folder of all targets of a block, or how many folders they are in; empty if it is not known."""
    folders = block.folders
    if len(folders) == 1:
        return folder_note(block.targets[0])
    return f"in {len(folders)} folders" if None not in folders else ""


def emptied_lists(block: Block) -> Iterator[str]:
    """Yield a line for each kind of list that ``exactly`` empties."""
    if block.level == "alone":
        yield from value_texts.emptied_lists(block.targets[0])
        return
    emptied = Counter(each.aspect for target in block.targets for each in target.emptied if each.count > 1)
    for aspect, count in emptied.items():
        lists = f"all {aspect.replace('_', ' ')}s of {plural(count, 'target')}"
        yield f"{lists} are removed: the lists are empty afterwards"


def place_of(named: NamedTargets) -> str:
    """Return the servers and the database of names, to be put before them."""
    servers = ", ".join(show_range(each) for each in name_ranges(named.servers))
    return f"{servers} · {show(named.database)}: " if named.database else f"{servers}: "


def show_range(names: NameRange, to: str = "…") -> str:
    """Return a name, or the first and the last name of a range with their number; visible.

    A name that could be taken for a list or a range is quoted.

    >>> show_range(NameRange("EP001", "EP297", 297)), show_range(NameRange("A, B", "A, B", 1))
    ('EP001…EP297 (297)', '"A, B"')
    """
    first, last = (show(name, quoted=any(sign in name for sign in (",", ";", "…", ": "))) for name in names[:2])
    return first if names.size == 1 else f"{first}{to}{last} ({names.size})"


def deletions_sentence(deletions: Collection[PlannedChange]) -> str:
    """Return how much is deleted, to be put above the list of it."""
    links = sum(change.aspect == "link" for _, change in deletions)
    assets = len(deletions) - links
    verb = "is" if len(deletions) == 1 else "are"
    forever = "; this cannot be undone" if not links else "; a deleted asset cannot be brought back" if assets else ""
    return f"{count_deletions(assets, links)} {verb} deleted{forever}:"
