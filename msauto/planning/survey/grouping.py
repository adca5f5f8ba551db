"""Intents that lead to the same clip, by title, by key id or by select, become one group: one target."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from msauto.concurrency import concurrent_map, in_turns
from msauto.diffing.comparison import plain
from msauto.errors import MsautoError, PlanningError
from msauto.interface import versions
from msauto.model.desired import ChannelRef, DatabaseRef, IdRef, Intent, SelectRef, ServerIntents, TaskSource, TitleRef
from msauto.model.facts import Facts, Need, NoAssetError
from msauto.model.identity import differing, fits, identity_of
from msauto.model.live import Asset, Entry, show_folder
from msauto.model.plan import Address, Kind
from msauto.model.ports import Reader
from msauto.model.server import ServerSpec
from msauto.planning.survey.fact_layers import Layers, XmpAnswers

Key = tuple[str, ...]
_Holds = Callable[[Callable[[Facts], bool], Entry], Awaitable[tuple[bool, frozenset[str]]]]


@dataclass(frozen=True, slots=True)
class IntentGroupMember:
    """One intent as it concerns one target; ``entry`` where a listing led to it, ``title`` as it was asked for.

    ``looked`` names the facts that ``where`` touched.
    """

    intent: Intent
    title: str | None = None
    entry: Entry | None = None
    looked: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _SelectedEntries:
    """An entry of a listing that a select chooses, and the facts that its ``where`` touched."""

    entry: Entry
    looked: frozenset[str] = frozenset()


@dataclass(slots=True)
class IntentGroup:
    """All that is declared for one target. ``names``: the title, then former ones. ``by_id``: its address and answer.

    ``merged`` are the groups that led to one clip by different names, each of which is looked up on its own. ``chain``
    are former titles that another task gives to a further clip, each with that clip's oldest titles; ``next_titles``
    are what another task renames the clip to that has this group's title now, and so on.
    """

    kind: Kind
    database: str
    name: str
    names: tuple[str, ...] = ()
    by_id: tuple[Address, Asset | None] | None = None
    members: list[IntentGroupMember] = field(default_factory=list)
    error: MsautoError | None = None
    merged: tuple[IntentGroup, ...] = ()
    chain: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    next_titles: tuple[str, ...] = ()

    @property
    def parts(self) -> tuple[IntentGroup, ...]:
        """The groups of one name each."""
        return self.merged or (self,)

    @property
    def batch(self) -> int:
        """The number of the plan's batch that it belongs to: where several plays speak of it, the first one's."""
        return min((member.intent.batch for member in self.members), default=0)


@dataclass(frozen=True, slots=True)
class _ResolvedIntent:
    """Where one intent leads: clips of a listing, an answer by id, or what went wrong."""

    intent: Intent
    chosen: tuple[_SelectedEntries, ...] = ()
    asset: Asset | None = None
    error: MsautoError | None = None


def merge_groups(groups: Sequence[IntentGroup]) -> IntentGroup:
    """Return one group of several that lead to one clip by different names."""
    first = groups[0]
    names = tuple(dict.fromkeys(name for group in groups for name in group.names))
    members = [member for group in groups for member in group.members]
    return IntentGroup(first.kind, first.database, first.name, names, members=members, merged=tuple(groups))


async def group_intents(
    work: ServerIntents, reader: Reader, forks: int, answers: XmpAnswers | None = None
) -> list[IntentGroup]:
    """Return the groups, in the order in which the playbooks first mention them."""
    answers = answers or XmpAnswers()
    former = _FormerTitles(work.intents)
    groups: dict[Key, IntentGroup] = {}

    async def lead(intent: Intent) -> _ResolvedIntent:
        return await _lead(intent, work.server, reader, forks, answers)

    async for led in concurrent_map(lead, work.intents, limit=forks):
        async for key, group, member in in_turns(_places(led, former)):
            found = groups.setdefault(key, group)
            found.members.append(member)
            found.error = found.error or group.error
    return list(groups.values())


class _FormerTitles:
    """Former titles: what each one is called now, and which titles may still be found instead of a title."""

    def __init__(self, intents: Sequence[Intent]) -> None:
        self._now: dict[tuple[str, str], str] = {}
        self._was: dict[tuple[str, str], list[str]] = {}
        self._claims: dict[tuple[str, str], list[Intent]] = {}
        for intent in intents:
            if isinstance(intent.ref, TitleRef) and intent.ref.was:
                self._add(intent, intent.ref)

    def _add(self, intent: Intent, ref: TitleRef) -> None:
        was = self._was.setdefault((ref.database, plain(ref.title)), [])
        for title in ref.was:
            if title != ref.title and title not in was:
                was.append(title)
            if plain(title) == plain(ref.title):
                continue  # another spelling of the title (NFC, NFD): the server may know only that one
            self._now.setdefault((ref.database, plain(title)), ref.title)
            self._claims.setdefault((ref.database, plain(title)), []).append(intent)

    def now(self, database: str, title: str) -> str:
        if (database, plain(title)) in self._was:
            return title  # a task gives it to another clip
        return self._now.get((database, plain(title)), title)

    def chain(self, database: str, title: str) -> dict[str, tuple[str, ...]]:
        """Return the former titles of a title that other tasks give to a clip, each with that clip's oldest ones."""
        known = (name for name in self._was.get((database, plain(title)), ()) if plain(name) != plain(title))
        return {name: self._oldest(database, name) for name in known if (database, plain(name)) in self._was}

    def _oldest(self, database: str, title: str) -> tuple[str, ...]:
        """Return the former titles, and theirs, that no other task gives to a clip."""
        found: dict[str, None] = {}
        ahead, seen = [title], {plain(title)}
        while ahead:
            for name in self._was.get((database, plain(ahead.pop())), ()):
                if (database, plain(name)) not in self._was:
                    found[name] = None
                elif plain(name) not in seen:
                    seen.add(plain(name))
                    ahead.append(name)
        return tuple(found)

    def next_titles(self, database: str, title: str) -> tuple[str, ...]:
        """Return what the clip is renamed to that has this title now, where another one is to get it; and so on."""
        found: list[str] = []
        while (database, plain(title)) in self._was and (database, plain(title)) in self._now:
            title = self._now[database, plain(title)]
            if title in found:
                break  # titles that are exchanged: an error of its own
            found.append(title)
        return tuple(found)

    def names(self, database: str, title: str) -> tuple[str, ...]:
        return (title, *self._was.get((database, plain(title)), ()))

    def error(self, database: str, title: str) -> PlanningError | None:
        """Return the error of a former title that two titles claim, or that has a former title itself."""
        for was in self._was.get((database, plain(title)), ()):
            if plain(was) == plain(title):
                continue
            claims = self._claims[database, plain(was)]
            titles = {plain(intent.ref.title) for intent in claims if isinstance(intent.ref, TitleRef)}
            if self._is_swap(database, title):
                return PlanningError(
                    f"{title!r} and {was!r} are exchanged, and the interface renames one clip at a time by its title",
                    place=claims[-1].source.place,
                    remedy="rename in two runs: first give one of the clips a third title, then both their new ones",
                )
            if len(titles) > 1:
                places = " and ".join(str(intent.source.place) for intent in claims)
                return PlanningError(
                    f"the former title {was!r} leads to more than one title ({places})",
                    place=claims[-1].source.place,
                    remedy="name each former title under one title only",
                )
        return None

    def _is_swap(self, database: str, title: str) -> bool:
        """Tell whether following the former titles leads back to the title."""
        seen: set[str] = set()
        ahead = [title]
        while ahead:
            for was in self._was.get((database, plain(ahead.pop())), ()):
                if plain(was) == plain(title) and seen:
                    return True
                if plain(was) not in seen and plain(was) != plain(title):
                    seen.add(plain(was))
                    ahead.append(was)
        return False


def _places(led: _ResolvedIntent, former: _FormerTitles) -> Iterable[tuple[Key, IntentGroup, IntentGroupMember]]:
    """Return the groups that an intent belongs to; new ones, to be united with those of the same key."""
    intent, ref = led.intent, led.intent.ref
    if isinstance(ref, ChannelRef):
        return [(("rss_channel", ref.channel), IntentGroup("rss_channel", "", ref.channel), IntentGroupMember(intent))]
    if isinstance(ref, DatabaseRef):
        return [
            (("database", ref.database), IntentGroup("database", ref.database, ref.database), IntentGroupMember(intent))
        ]
    if led.error is not None:
        name = f"{ref.namespace}:{ref.identifier}" if isinstance(ref, IdRef) else _describe(ref)
        failed = IntentGroup("asset", ref.database, name, error=led.error)
        return [(("error", ref.database, name, str(intent.source.place)), failed, IntentGroupMember(intent))]
    if isinstance(ref, IdRef):
        return [_place_by_id(led, ref)]
    if isinstance(ref, TitleRef):
        return [_place(ref.database, ref.title, former, IntentGroupMember(intent, ref.title))]
    return (_selected(ref.database, intent, one, former) for one in led.chosen)


def _selected(
    database: str, intent: Intent, one: _SelectedEntries, former: _FormerTitles
) -> tuple[Key, IntentGroup, IntentGroupMember]:
    title = one.entry.title
    return _place(database, title, former, IntentGroupMember(intent, title, one.entry, one.looked))


def _place(
    database: str, asked: str, former: _FormerTitles, member: IntentGroupMember
) -> tuple[Key, IntentGroup, IntentGroupMember]:
    title = former.now(database, asked)
    error = former.error(database, title)
    group = IntentGroup("asset", database, title, former.names(database, title), error=error)
    group.chain, group.next_titles = former.chain(database, title), former.next_titles(database, title)
    return ("asset", database, plain(title)), group, member


def _place_by_id(led: _ResolvedIntent, ref: IdRef) -> tuple[Key, IntentGroup, IntentGroupMember]:
    name = f"{ref.namespace}:{ref.identifier}"
    group = IntentGroup("asset", ref.database, name, by_id=(Address(ref.identifier, ref.namespace), led.asset))
    return ("id", ref.database, ref.namespace, ref.identifier), group, IntentGroupMember(led.intent)


def _describe(ref: TitleRef | SelectRef) -> str:
    return ref.title if isinstance(ref, TitleRef) else f"select {show_folder(ref.folder) or '/'}"


def check_entry(entry: Entry, asset: Asset, source: TaskSource) -> None:
    """Raise ``PlanningError`` where the answer to a title is of another clip than the entry that a listing showed."""
    if fits(entry, asset):
        return
    place = show_folder((*entry.folder, entry.title))
    lives = "" if asset.folder is None else f", which lives in {show_folder(asset.folder) or '/'}"
    differ = ", ".join(
        f"{name} is {entry.attributes[name]} in the listing and {asset.attributes[name]} in the answer"
        for name in differing(entry, asset)
    )
    raise PlanningError(
        f"two clips have the title {entry.title!r}: the listing shows the one in {place}, and the server answers with "
        f"another{lives} ({differ or 'the link_id differs'})",
        place=source.place,
        remedy="select another `folder:`, address the clip by a key field with `id:`, or give one of the two another "
        "title",
    )


# Reading where intents lead ------------------------------------------------------------------------------------


async def _lead(intent: Intent, server: ServerSpec, reader: Reader, forks: int, answers: XmpAnswers) -> _ResolvedIntent:
    try:
        if isinstance(intent.ref, IdRef):
            versions.require(server, versions.Feature.KEY_ID)
            address = Address(intent.ref.identifier, intent.ref.namespace)
            return _ResolvedIntent(intent, asset=await reader.read_asset(intent.ref.database, address))
        if isinstance(intent.ref, SelectRef):
            return _ResolvedIntent(intent, chosen=await _select(intent, intent.ref, reader, forks, answers))
    except MsautoError as error:
        return _ResolvedIntent(intent, error=error)
    return _ResolvedIntent(intent)


async def _select(
    intent: Intent, ref: SelectRef, reader: Reader, forks: int, answers: XmpAnswers
) -> tuple[_SelectedEntries, ...]:
    entries = await reader.read_select(ref)
    if entries is None:
        raise PlanningError(
            f"there is no folder {show_folder(ref.folder) or '/'} in database {ref.database}",
            place=intent.source.place,
            remedy="correct the folder, or make it",
        )

    async def holds(where: Callable[[Facts], bool], entry: Entry) -> tuple[bool, frozenset[str]]:
        return await _holds(where, ref.database, entry, reader, answers, intent.source)

    found = tuple([chosen async for chosen in _chosen(ref, entries, holds, forks)])
    if ref.expect_min is not None or ref.expect_max is not None:
        clips = {identity_of(chosen.entry) or plain(chosen.entry.title) for chosen in found}
        _check_expected(intent, ref, len(clips))
    return found


async def _chosen(
    ref: SelectRef, entries: Sequence[Entry], holds: _Holds, forks: int
) -> AsyncIterator[_SelectedEntries]:
    """Yield the entries that ``where`` holds for; a clip is read only where its listing cannot answer."""
    where = ref.where
    if where is None:
        async for entry in in_turns(entries):
            yield _SelectedEntries(entry)
        return

    async def look(entry: Entry) -> tuple[bool, frozenset[str]]:
        return await holds(where, entry)

    pending: list[Entry] = []
    async for entry in in_turns(entries):
        facts = Facts(entry=entry)
        try:
            if where(facts):
                yield _SelectedEntries(entry, frozenset(f"fact:{name}" for name in facts.looked))
        except Need:
            pending.append(entry)
    looked = concurrent_map(look, pending, limit=forks)
    index = 0
    async for chosen, names in looked:
        if chosen:
            yield _SelectedEntries(pending[index], names)
        index += 1


async def _holds(
    where: Callable[[Facts], bool],
    database: str,
    entry: Entry,
    reader: Reader,
    answers: XmpAnswers,
    source: TaskSource,
) -> tuple[bool, frozenset[str]]:
    async def find() -> tuple[Asset, Address, str] | None:
        address = Address(entry.title)
        asset = await reader.read_asset(database, address)
        if asset is not None:
            check_entry(entry, asset, source)
        return None if asset is None else (asset, address, entry.title)

    layers = Layers(reader, database, find, answers)
    try:
        return await layers.evaluate(where, entry, source), frozenset(layers.looked)
    except NoAssetError:
        return False, frozenset()  # it went between the listing and the reading


def _check_expected(intent: Intent, ref: SelectRef, count: int) -> None:
    low, high = ref.expect_min, ref.expect_max
    if (low is not None and count < low) or (high is not None and count > high):
        raise PlanningError(
            f"{_describe(ref)} finds {count} assets; expected: {low or 0} to {'any number' if high is None else high}",
            place=intent.source.place,
            remedy="look at what is there with `msauto show`, or correct `expect`",
        )
