"""One asset of the survey: find the clip, evaluate what the tasks want of it, read the rest, compare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeGuard

from msauto.errors import PlanningError
from msauto.model.facts import NoAssetError
from msauto.model.live import Asset, show_folder
from msauto.model.plan import Address, Settlement, Target
from msauto.model.ports import Disk, LiveTarget, Memory, NoDisk, Reader
from msauto.model.secrets import Secrets
from msauto.model.spec import ServerSpec
from msauto.model.wanted import AssetWanted, ProxyWanted, RunWanted, Said, ThumbnailWanted, TitleRef, Wanted
from msauto.planning.compare import plain, same_folder, same_text
from msauto.planning.draft import refuse
from msauto.planning.fingerprint import slow_if_secret
from msauto.planning.grouping import Group, Member
from msauto.planning.handlers import certain, notified, owed_calls
from msauto.planning.layers import Layers, XmpAnswers
from msauto.planning.limits import removes
from msauto.planning.memories import Recalled, recall
from msauto.planning.reading import read_folders, read_xmp_fields
from msauto.planning.target import AssetPlan, Found, Given, link_places
from msauto.planning.unite import unite
from msauto.planning.unlink import check_unlinks

State = Literal["changed", "unchanged", "skipped"]
Asked = tuple[Member, Wanted]


@dataclass(frozen=True, slots=True)
class World:
    """What the survey of one server works with.

    ``owing`` are the assets (database, title) of which a run has left something undone, ``forget``: take that as
    settled. ``answers`` is what is known of XMP fields here. ``secrets`` tells those that came up so far.
    """

    server: ServerSpec
    reader: Reader
    memory: Memory
    find_links: bool = False
    disk: Disk = field(default_factory=NoDisk)
    owing: frozenset[tuple[str, str]] = frozenset()
    forget: bool = False
    answers: XmpAnswers = field(default_factory=XmpAnswers)
    secrets: Callable[[], Secrets] = Secrets


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one target: only one that changes, or is in error, is kept."""

    state: State
    target: Target | None = None
    warnings: tuple[str, ...] = ()
    settlements: tuple[Settlement, ...] = ()

    @classmethod
    def of(cls, target: Target, warnings: tuple[str, ...], settlements: tuple[Settlement, ...] = ()) -> Outcome:
        """Keep the target if it has changes."""
        if target.changes:
            return cls("changed", target, warnings, settlements)
        return cls("unchanged", None, warnings, settlements)


async def survey_asset(world: World, group: Group) -> Outcome:
    """Plan one asset. Raises the errors of this one target."""
    finder = _Clip(world, group)
    layers = Layers(world.reader, group.database, finder, world.answers)
    said, unknown = await _evaluate(layers, group)
    owing = _is_owing(world, group)
    if not said and not unknown and not owing:
        return Outcome("skipped")
    clip = await layers.clip()
    stays: tuple[str, ...] = ()
    if clip is not None and finder.stays:
        stays = (f"{clip[2]}: the title is left alone, for another clip is called {group.name!r} by now",)
        group = replace(group, name=clip[2], names=(clip[2],))
    here = [(m, w) for m, w in said if clip is not None and _is_meant(m, clip[2], group)]
    away = [(m, w) for m, w in said if clip is None or not _is_meant(m, clip[2], group)]
    missing = await _not_there(world, group, away, unknown)
    if clip is None or (not here and not owing):
        told = dict.fromkeys(m.intent.if_missing for m in (*(m for m, _ in away), *unknown))
        return Outcome(missing if said or unknown else "skipped", warnings=tuple(filter(None, told)))
    asset, address, title = clip
    looked = frozenset().union(layers.looked, *(member.looked for member in group.members))
    found = Found(world.server, group.database, asset, address, title, looked)
    outcome = await _compare(world, group, layers, found, here)
    return replace(outcome, warnings=(*stays, *outcome.warnings))


class _Clip:
    """Finds the clip of a group: by id, by its title, else by one of its former titles.

    ``stays``: it keeps the former title by which it was found, for another clip has the other one.
    """

    stays = False

    def __init__(self, world: World, group: Group) -> None:
        self._world = world
        self._group = group

    async def __call__(self) -> tuple[Asset, Address, str] | None:
        found: list[tuple[Asset, Address, str]] = []
        by_id = self._group.by_id
        if by_id and by_id[1] is not None:
            found.append((by_id[1], by_id[0], by_id[1].title or self._group.name))
        for name in self._group.names:
            if found and by_id and same_text(found[0][2], name):
                continue
            asset = await self._read(name)
            if asset is not None:
                found.append((asset, Address(name), name))
        if len(found) > 1 and _may_stay(self._group):
            self.stays = True
            return found[-1]
        if len(found) > 1:
            raise PlanningError(
                f"both {found[0][2]!r} and {found[1][2]!r} are there: which of them is meant cannot be told",
                place=_namer(self._group).intent.source.place,
                remedy="rename or delete one of them, or take the former title out of `was`",
            )
        return found[0] if found else None

    async def _read(self, name: str) -> Asset | None:
        asset = await self._world.reader.read_asset(self._group.database, Address(name))
        if asset is not None and asset.title is not None and not same_text(asset.title, name):
            raise PlanningError(
                f"asked for {name!r}, the server answers with {asset.title!r}: that is another clip",
                place=self._group.members[0].intent.source.place,
                remedy="write the title letter by letter as the server shows it",
            )
        return asset


def _namer(group: Group) -> Member:
    """Return the member that names former titles."""
    named = (m for m in group.members if isinstance(m.intent.ref, TitleRef) and m.intent.ref.was)
    return next(named, group.members[0])


def _may_stay(group: Group) -> bool:
    """Tell whether the clip may keep a former title: where undo alone speaks of it."""
    return all(isinstance(m.intent.ref, TitleRef) and m.intent.ref.may_stay for m in group.members)


async def _evaluate(layers: Layers, group: Group) -> tuple[list[Asked], list[Member]]:
    """Return what each member wants; and the members whose facts cannot be had, for the asset is not there."""
    said: list[Asked] = []
    unknown: list[Member] = []
    for member in group.members:
        try:
            wanted = await layers.evaluate(member.intent.evaluate, member.entry, member.intent.source)
        except NoAssetError:
            unknown.append(member)
        else:
            said += [(member, wanted)] if wanted is not None else []
    return said, unknown


def _is_meant(member: Member, title: str, group: Group) -> bool:
    """Tell whether a member means the clip that was found; one that asks for a title now given up does not."""
    if member.title is None or same_text(member.title, group.name) or same_text(member.title, title):
        return True
    was = member.intent.ref.was if isinstance(member.intent.ref, TitleRef) else ()
    return any(same_text(title, name) for name in was)


async def _not_there(world: World, group: Group, away: Sequence[Asked], unknown: Sequence[Member]) -> State:
    """Tell what comes of intents whose asset is not there; an error unless they allow for it, or it is to be absent."""
    if not away and not unknown:
        return "unchanged"
    if not await world.reader.has_database(group.database):
        raise refuse(
            f"server {world.server.name} has no database {group.database!r}",
            group.members[0].intent.source,
            "look at the databases with `msauto show databases`",
        )
    state: State = "unchanged"
    for member, wanted in (*away, *((member, None) for member in unknown)):
        if member.intent.absent or (isinstance(wanted, AssetWanted) and not wanted.present):
            continue
        if member.intent.missing != "skip" and not (isinstance(wanted, AssetWanted) and wanted.missing == "skip"):
            raise refuse(
                f"server {world.server.name}, database {group.database}: there is no asset {_asked(member, group)}",
                member.intent.named or member.intent.source,
                "correct the title, or say `missing: skip`",
            )
        state = "skipped"
    return state


def _asked(member: Member, group: Group) -> str:
    was = member.intent.ref.was if isinstance(member.intent.ref, TitleRef) else ()
    former = f" (nor {', '.join(map(repr, was))})" if was else ""
    return f"{member.title or group.name!r}{former}"


# Comparing -----------------------------------------------------------------------------------------------------


async def _compare(world: World, group: Group, layers: Layers, found: Found, here: Sequence[Asked]) -> Outcome:
    wanteds = [_renamed(member, wanted, group, found) for member, wanted in here if isinstance(wanted, AssetWanted)]
    runs = [wanted for _, wanted in here if isinstance(wanted, RunWanted)]
    wanted = None
    if wanteds:
        title = next((w.title.value for w in wanteds if w.title), found.title)
        wanted = unite(wanteds, found.asset, title)
        if not _finalized(found, min(wanteds, key=_strictness)):
            return Outcome("skipped")
        found = _guarded(found, wanted)
        await _check_home(world, found, wanted, here)
    live = await _read_rest(world, layers, found, wanted)
    recalled = recall(world.memory, found, group.names, forget=world.forget)
    files = {run.dest: await world.disk.sha256(run.dest) for run in runs if _may_be_there(run, recalled)}
    given = Given(live, recalled.items, files, world.answers.batches.get(group.database))
    plan = AssetPlan(found, wanted, given)
    plan.tasks(runs)
    await check_unlinks(world.reader, found.database, found.asset, plan.draft.changes)
    known = world.secrets()

    def recalled_anew() -> Recalled:
        again = world.secrets() != known  # of a secret that only a handler says, the memory is known only by now
        return recall(world.memory, found, group.names, forget=world.forget) if again else recalled

    warnings = await _call_handlers(plan, layers, group, here, wanted, recalled_anew)
    links = layers.links or live.links
    if links is None and world.find_links and removes(plan.draft.changes):
        links = await world.reader.read_links(found.database, found.asset)
    live = replace(live, xmp=layers.with_xmp(live.xmp), links=links)
    target, told = plan.target(layers.looked, live)
    target = slow_if_secret(target, live, world.secrets())
    outcome = Outcome.of(target, (*told, *warnings), recalled.settlements)
    return outcome if here or target.changes else replace(outcome, state="skipped")


def _may_be_there(run: RunWanted, recalled: Recalled) -> TypeGuard[ThumbnailWanted | ProxyWanted]:
    """Tell whether a file is worth a look: only one that was fetched before can be the one that is wanted."""
    kind = {ThumbnailWanted: "thumbnail", ProxyWanted: "proxy"}.get(type(run))
    return kind is not None and f"{kind}:{getattr(run, 'dest', '')}" in recalled.items


def _is_owing(world: World, group: Group) -> bool:
    """Tell whether an earlier run has left something undone of an asset that these tasks are about."""
    names = {plain(name) for name in (*group.names, group.name)}
    if group.by_id and group.by_id[1] is not None and group.by_id[1].title:
        names.add(plain(group.by_id[1].title))
    return any((group.database, plain(name)) in world.owing for name in names)


async def _call_handlers(
    plan: AssetPlan,
    layers: Layers,
    group: Group,
    here: Sequence[Asked],
    wanted: AssetWanted | None,
    recalled: Callable[[], Recalled],
) -> list[str]:
    """Plan the handlers that the changes call, and those that are owed; return what cannot be run, and why."""
    asked = [(member.intent.notify, said) for member, said in here]
    called = notified(asked, wanted, plan.draft.changes)
    surely = notified(asked, wanted, certain(plan.draft.changes))
    known = [handler for member in group.members for handler in member.intent.notify]
    calls, warnings = owed_calls(recalled().items, known, called, surely)
    runs = [await layers.evaluate(call.handler.evaluate, None, call.handler.source) for call in calls]
    plan.know(recalled().items)
    for call, run in zip(calls, runs, strict=True):
        if isinstance(run, RunWanted):
            plan.handler(run, call.handler.name, call.owed)
    return [f"{group.name}: {warning}" for warning in warnings]


def _renamed(member: Member, wanted: AssetWanted, group: Group, found: Found) -> AssetWanted:
    """Want the new title where the clip was found under a former one; a title that only finds the clip is no want."""
    if member.title is None or not wanted.present:
        return wanted
    if same_text(member.title, group.name) and not same_text(found.title, group.name):
        return replace(wanted, title=Said(group.name, wanted.title.source if wanted.title else wanted.source))
    return replace(wanted, title=None)


def _finalized(found: Found, wanted: AssetWanted) -> bool:
    """Tell whether to go on: a clip still being recorded is an error, unless the task skips or allows it."""
    if found.asset.finalized is not False or wanted.unfinalized == "allow":
        return True
    if wanted.unfinalized == "skip":
        return False
    raise refuse(
        f"{found.title!r} is still being recorded (finalized is false)",
        wanted.source,
        "wait until it is done, or say `unfinalized: skip` or `unfinalized: allow`",
    )


def _strictness(wanted: AssetWanted) -> int:
    """The least is the task that allows the least of a clip still being recorded."""
    return ("error", "skip", "allow").index(wanted.unfinalized)


def _guarded(found: Found, wanted: AssetWanted) -> Found:
    """Check the guard: the clip must live in the folder that the task names."""
    guard = wanted.folder
    if guard is None:
        return found
    folder, otherwise = found.asset.folder, found.asset.folder_otherwise
    if folder is None or otherwise is not None or not same_folder(folder, guard.value):
        lives = "the server does not tell where it lives" if folder is None else f"it lives in {_shown(folder)}"
        if otherwise is not None:
            lives += f", or in {_shown(otherwise)}: this server may put the name of the database in front"
        raise refuse(
            f"{found.title!r} must live in {_shown(guard.value)}, and {lives}",
            guard.source,
            "correct the folder, or look whether this is the clip that is meant",
        )
    return replace(found, looked=found.looked | {"folder"})


def _shown(folder: tuple[str, ...]) -> str:
    return show_folder(folder) or "/"


async def _check_home(world: World, found: Found, wanted: AssetWanted, here: Sequence[Asked]) -> None:
    """Refuse to delete a clip for an entry that is only a link to it, or that may be one."""
    home = found.asset.folder if found.asset.folder_otherwise is None else None
    entries = [member.entry for member, _ in here if member.entry is not None]
    if wanted.present or not entries:
        return
    if home is None:
        await _check_only_entry(world, found, wanted)
    elif not any(same_folder(entry.folder, home) for entry in entries):
        raise refuse(
            f"the entry {_shown((*entries[0].folder, entries[0].title))} is a link: its clip lives in {_shown(home)}, "
            "and is not deleted for a link",
            wanted.source,
            "select the clip where it lives, or name it by its title",
        )


async def _check_only_entry(world: World, found: Found, wanted: AssetWanted) -> None:
    """Refuse to delete a clip with links where the server does not tell which of its entries is the clip."""
    shown = await world.reader.read_links(found.database, replace(found.asset, title=found.title))
    if len(shown) > (0 if found.asset.links is not None else 1):
        places = ", ".join(_shown((*link.folder, link.title)) for link in shown)
        raise refuse(
            f"{found.title!r} shows in more than one folder ({places}), and the server does not tell where it lives: "
            "the selected entry may be a link, and a clip is not deleted for a link",
            wanted.source,
            "name the clip by its title",
        )


async def _read_rest(world: World, layers: Layers, found: Found, wanted: AssetWanted | None) -> LiveTarget:
    """Read what only the comparison needs: XMP fields, the folders of links, all links."""
    xmp, links = layers.xmp, layers.links
    if wanted is None:
        return LiveTarget(asset=found.asset, xmp=xmp, links=links)
    if wanted.xmp and xmp is None and found.database not in world.answers.batches:
        names = frozenset(wanted.xmp)
        xmp = await read_xmp_fields(world.reader, found.database, found.address, names)
    if links is None and wanted.exactly.links:
        links = await world.reader.read_links(found.database, found.asset)
    folders = await read_folders(world.reader, found.database, link_places(found, wanted))
    return LiveTarget(asset=found.asset, xmp=xmp, folders=folders, links=links)
