"""What a plan may not do without a flag: the limits of deletions, removals and requests, and what is protected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from msauto.aspects import ASPECTS, deletions_of
from msauto.model.identity import plain
from msauto.model.live import Folder, parse_folder, show_folder
from msauto.model.plan import Change, Limits, Plan, Refusal, Target

EMPTIED = 3
"""Emptying a list of at least this many items needs a flag."""


def refusals(plan: Plan, limits: Limits) -> tuple[Refusal, ...]:
    """Return each limit that the plan exceeds, with the flag that allows it."""
    deleted: list[Change] = []
    removed = emptied = 0
    for target in plan.targets:
        deleted += deletions_of(target)
        removed += sum([change.losses for change in target.changes])
        emptied = max([emptied, *(emptied_list.count for emptied_list in target.emptied)])
    exceeded: list[Refusal] = []
    count = len(deleted)
    if count > limits.delete_assets:
        links = sum([ASPECTS[change.aspect].deletes == "link" for change in deleted])
        exceeded.append(
            Refusal("delete_assets", limits.delete_assets, count, f"--allow-delete {count}", links)
        )
    limit = limits.remove_items if limits.allow_remove is None else limits.allow_remove
    if removed > limit:
        exceeded.append(Refusal("remove_items", limit, removed, f"--allow-remove {removed}"))
    elif emptied >= EMPTIED and limits.allow_remove is None:
        exceeded.append(Refusal("empty_list", EMPTIED - 1, emptied, f"--allow-remove {removed}"))
    if limits.requests is not None and plan.requests > limits.requests:
        exceeded.append(
            Refusal("requests", limits.requests, plan.requests, f"--allow-requests {plan.requests}")
        )
    if limits.protected:
        exceeded += _protected(plan, limits.protected)
    return tuple(exceeded)


def _protected(plan: Plan, globs: Sequence[str]) -> Iterator[Refusal]:
    """Yield each target that loses something, and that a glob protects."""
    for target in plan.targets:
        if not target.loses:
            continue
        glob = next((glob for glob in globs if _is_under(target, glob)), None)
        if glob is not None:
            remedy = f"remove the task, or remove {glob!r} from `protected` in msauto.toml"
            called = f"{target.server} {target.database} {target.name}".strip()
            yield Refusal("protected", glob, called, remedy)


def _is_under(target: Target, glob: str) -> bool:
    """Whether a glob matches a title of the target, or a folder that contains it: its home folder, or a link's."""
    names = [target.name]
    if target.folder is not None:
        for folder in _possible_folders(parse_folder(target.folder), target.database):
            names += [*_folder_and_parents(folder), show_folder((*folder, target.name))]
    for shown in target.places:
        place = parse_folder(shown)
        names += place[-1:]
        for folder in _possible_folders(place, target.database):
            names += _folder_and_parents(folder)
    # A title with brackets or a path with outer slashes also matches literally: a protection that silently misses is
    # worse than one that matches too much.
    form = plain(glob)
    stripped = form.strip("/")
    for name in map(plain, names):
        if name == form or fnmatchcase(name, form) or fnmatchcase(name, stripped):
            return True
    return False


def _possible_folders(folder: Folder, database: str) -> Iterator[Folder]:
    """Yield the possible paths of a folder: servers may put the name of the database in front, or omit it."""
    yield folder
    yield (database, *folder)
    if folder[:1] == (database,):
        yield folder[1:]


def _folder_and_parents(folder: Folder) -> Iterator[str]:
    """Yield a folder and all its parents."""
    for depth in range(1, len(folder) + 1):
        yield show_folder(folder[:depth])
