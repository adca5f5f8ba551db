"""Refusals: what a plan may not do unless a flag allows it (the contract, «Limits»)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from msauto.model.identity import plain
from msauto.model.live import Folder, parse_folder, show_folder
from msauto.model.plan import Change, Limits, Plan, Refusal, Target

LISTS = frozenset({"segment", "marker", "link", "rss_item"})
EMPTIED = 3
"""Emptying a list of at least this many items needs a flag."""


def refusals(plan: Plan, limits: Limits) -> tuple[Refusal, ...]:
    """Return each limit that the plan exceeds, with the flag that allows it."""
    found = (_deletions(plan, limits), _removals(plan, limits), _requests(plan, limits))
    return (*(refusal for refusal in found if refusal), *_protected(plan, limits.protected))


def _changes(plan: Plan) -> Iterator[Change]:
    return (change for target in plan.targets for change in target.changes)


def deletes_asset(change: Change) -> bool:
    """Whether a change counts as a deletion: of an asset, or of a link by its title."""
    return change.action == "delete" and change.aspect in {"asset", "link"}


def removes(changes: Iterable[Change]) -> bool:
    """Whether something is removed: the asset, or an item of its lists."""
    return any(change.action == "delete" for change in changes)


def _deletions(plan: Plan, limits: Limits) -> Refusal | None:
    deleted = [change.aspect for change in _changes(plan) if deletes_asset(change)]
    count = len(deleted)
    if count <= limits.delete_assets:
        return None
    return Refusal("delete_assets", limits.delete_assets, count, f"--allow-delete {count}", deleted.count("link"))


def _removals(plan: Plan, limits: Limits) -> Refusal | None:
    count = sum(change.exactly and change.aspect in LISTS for change in _changes(plan))
    if limits.allow_remove is not None and count <= limits.allow_remove:
        return None
    emptied = [each.count for target in plan.targets for each in target.emptied if each.count >= EMPTIED]
    limit = limits.remove_items if limits.allow_remove is None else limits.allow_remove
    if count > limit:
        return Refusal("remove_items", limit, count, f"--allow-remove {count}")
    if emptied:
        return Refusal("empty_list", EMPTIED - 1, max(emptied), f"--allow-remove {count}")
    return None


def _requests(plan: Plan, limits: Limits) -> Refusal | None:
    if limits.requests is None or plan.requests <= limits.requests:
        return None
    return Refusal("requests", limits.requests, plan.requests, f"--allow-requests {plan.requests}")


def _protected(plan: Plan, globs: Sequence[str]) -> Iterator[Refusal]:
    for target in plan.targets:
        taken = removes(target.changes)
        glob = next((glob for glob in globs if taken and _is_under(target, glob)), None)
        if glob is not None:
            remedy = f"remove the task, or remove {glob!r} from `protected` in msauto.toml"
            yield Refusal("protected", glob, f"{target.server} {target.database} {target.name}".strip(), remedy)


def _is_under(target: Target, glob: str) -> bool:
    """Whether a glob matches a title of the target, or a folder that contains it: its home folder, or a link's."""
    names = [target.name]
    home = None if target.folder is None else parse_folder(target.folder)
    for folder in _possible_folders(home, target.database):
        names += [*_folder_and_parents(folder), show_folder((*folder, target.name))]
    for place in map(parse_folder, target.places):
        names += place[-1:]
        names += [name for path in _possible_folders(place, target.database) for name in _folder_and_parents(path)]
    return any(_matches(plain(name), plain(glob)) for name in names)


def _possible_folders(folder: Folder | None, database: str) -> Iterator[Folder]:
    """Yield the possible paths of a folder: servers may put the name of the database in front, or omit it."""
    if folder is not None:
        yield folder
        yield (database, *folder)
        if folder[:1] == (database,):
            yield folder[1:]


def _matches(name: str, glob: str) -> bool:
    """Whether a glob matches; a title with brackets or a path with outer slashes also matches literally.

    A protection that silently misses is worse than one that matches too much.
    """
    return name == glob or any(fnmatchcase(name, each) for each in (glob, glob.strip("/")))


def _folder_and_parents(folder: Folder) -> Iterator[str]:
    """Yield a folder and all its parents."""
    for depth in range(1, len(folder) + 1):
        yield show_folder(folder[:depth])
