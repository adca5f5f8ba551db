"""What a plan may not do without a flag: the limits of deletions, removals and requests, and what is protected."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct, structs

from msauto.aspects import ASPECTS, deletions_of
from msauto.concurrency import in_turns
from msauto.model.identity import matches
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
    if limits.protected or limits.read_only:
        for target in plan.targets:
            exceeded += forbidden(target, limits)
    return tuple(exceeded)


def forbidden(target: Target, limits: Limits) -> Iterator[Refusal]:
    """Yield why a target may not be changed as planned by any flag."""
    if limits.protected and target.loses:
        yield from _forbidden("protected", limits.protected, target)
    if limits.read_only and writes(target):
        yield from _forbidden("read_only", limits.read_only, target)


def without_forbidden(plan: Plan, limits: Limits) -> Plan:
    """Return the plan of an undo in which such targets are in error, so that they do not block the others."""
    targets: list[Target] = []
    for target in plan.targets:
        for refusal in forbidden(target, limits):
            error = f"{refusal.code} in msauto.toml: {refusal.limit!r}\n  → {refusal.remedy}"
            target = structs.replace(target, changes=(), requests=(), error=error)
        targets.append(target)
    plan = structs.replace(plan, targets=tuple(targets))
    return structs.replace(plan, refusals=refusals(plan, limits))


def writes(target: Target) -> bool:
    """Return whether a target is written to, and not only downloaded from."""
    only_downloads = bool(target.requests)
    for request in target.requests:
        only_downloads = only_downloads and request.dest is not None
    return bool(target.changes) and not only_downloads


def _forbidden(code: str, globs: Sequence[str], target: Target) -> Iterator[Refusal]:
    """Yield the refusal of a target that a glob of the settings names, if one does."""
    names = _names_of(target)
    for glob in globs:
        if matches(glob, names):
            leave = "remove the task (of an undo: --keep-going leaves it out)"
            remedy = f"{leave}, or remove {glob!r} from `{code}` in msauto.toml"
            called = f"{target.server} {target.database} {target.name}".strip()
            yield Refusal(code, glob, called, remedy)
            return


def _names_of(target: Target) -> list[str]:
    """Return the titles of a target and the folders that contain it: its home folder, and those of its links."""
    names = [target.name, target.title_after]
    for change in target.changes:
        if ASPECTS[change.aspect].deletes == "link":
            names += place_names(parse_folder(change.key), target.database)
    if target.folder is not None:
        names += place_names((*parse_folder(target.folder), target.name), target.database)
    for shown in target.places:
        names += place_names(parse_folder(shown), target.database)
    return names


def place_names(place: Folder, database: str) -> Iterator[str]:
    """Yield what a glob may name of an entry: its title, its place, and its folder with all parents.

    Servers may put the name of the database in front of a folder, or omit it.
    """
    yield from place[-1:]
    forms = [place, (database, *place)]
    if place[:1] == (database,):
        forms.append(place[1:])
    for form in forms:
        for depth in range(1, len(form) + 1):
            yield show_folder(form[:depth])


class Protection(Struct):
    """The globs that protect what they match, and those of them that have ``matched`` anything, on any server.

    That is looked for in ``databases`` of which all entries are listed anyway: where something is lost, or a select
    names all. Nothing may be written to what ``read_only`` matches: of what changes, all links are looked at.
    """

    protected: Sequence[str] = ()
    read_only: Sequence[str] = ()
    matched: set[str] = set()
    databases: dict[str, None] = {}

    def __bool__(self) -> bool:
        return bool(self.protected or self.read_only)

    async def look_at(self, places: Iterable[Folder], database: str) -> None:
        """Note which globs match one of the places of a database, or a folder that contains it."""
        self.databases[database] = None
        unmatched = set(self.unmatched)
        async for place in in_turns(places):
            if not unmatched:
                break
            names = list(place_names(place, database))
            matched = {glob for glob in unmatched if matches(glob, names)}
            self.matched |= matched
            unmatched -= matched

    def merge(self, other: Protection) -> None:
        """Add what the same globs matched elsewhere."""
        self.matched |= other.matched
        self.databases |= other.databases

    @property
    def unmatched(self) -> list[str]:
        """The globs that have matched nothing."""
        return sorted({*self.protected, *self.read_only} - self.matched)

    @property
    def warnings(self) -> tuple[str, ...]:
        """A warning of each glob that protects nothing of what was looked at."""
        if not self.databases:
            return ()
        where = ", ".join(self.databases)
        missed = (
            f"in msauto.toml matches no folder and no title of {where}: it protects nothing there"
        )
        warnings: list[str] = []
        for glob in self.unmatched:
            key = "protected" if glob in self.protected else "read_only"
            warnings.append(f"{glob!r} of `{key}` {missed}")
        return tuple(warnings)
