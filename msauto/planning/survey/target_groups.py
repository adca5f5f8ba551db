"""Group intents that concern the same clip by title, key id or select: one group is one target."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from msauto.concurrency import concurrent_map, in_turns
from msauto.errors import MsautoError, PlanningError
from msauto.interface import versions
from msauto.model.desired import ChannelRef, DatabaseRef, IdRef, Intent, SelectRef, ServerIntents, TaskSource, TitleRef
from msauto.model.facts import Facts, Need, NoAssetError
from msauto.model.identity import differing, fits, identity_of, plain
from msauto.model.live import Asset, Entry, show_folder
from msauto.model.plan import Address, Kind
from msauto.model.ports import Reader
from msauto.model.server import ServerSpec
from msauto.planning.survey.fact_layers import FoundClip, Layers, XmpAnswers

_Key = tuple[str, ...]
_Condition = Callable[[Callable[[Facts], bool], Entry], Awaitable[tuple[bool, frozenset[str]]]]


@dataclass(frozen=True, slots=True)
class IntentGroupMember:
    """One intent for one target: the ``title`` as declared, the ``entry`` that a select found, if any.

    ``looked`` names the facts that ``where`` used.
    """

    intent: Intent
    title: str | None = None
    entry: Entry | None = None
    looked: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _SelectedEntry:
    """An entry of a listing that a select chooses, and the facts that its ``where`` used."""

    entry: Entry
    looked: frozenset[str] = frozenset()


@dataclass(slots=True)
class IntentGroup:
    """Everything that is declared for one target.

    ``names``: the title, then former ones. ``by_id``: the address and its answer. ``merged``: the groups of one clip
    under different names, each of which is looked up on its own. ``chain``: former titles that another task gives to
    another clip, each with the oldest titles of that clip. ``next_titles``: the new title of the clip that has this
    title now, the new title of the clip that has that one, and so on.
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
        """The index of its batch; the first, where several plays declare it."""
        return min((member.intent.batch for member in self.members), default=0)


_KeyedMember = tuple[_Key, IntentGroup, IntentGroupMember]
"""A new group under its key, and the member that belongs there."""


@dataclass(frozen=True, slots=True)
class _ResolvedIntent:
    """The clips of one intent: entries of a listing, an answer by id, or an error."""

    intent: Intent
    selected: tuple[_SelectedEntry, ...] = ()
    asset: Asset | None = None
    error: MsautoError | None = None


def merge_groups(groups: Sequence[IntentGroup]) -> IntentGroup:
    """Return one group for one clip that several groups declare under different names."""
    first = groups[0]
    names = tuple(dict.fromkeys(name for group in groups for name in group.names))
    members = [member for group in groups for member in group.members]
    return IntentGroup(first.kind, first.database, first.name, names, members=members, merged=tuple(groups))


async def group_intents(
    work: ServerIntents, reader: Reader, forks: int, answers: XmpAnswers | None = None
) -> list[IntentGroup]:
    """Return the groups in the order of the playbooks."""
    answers = answers or XmpAnswers()
    former = _FormerTitles(work.intents)
    groups: dict[_Key, IntentGroup] = {}

    async def resolve(intent: Intent) -> _ResolvedIntent:
        return await _resolve(intent, work.server, reader, forks, answers)

    async for resolved in concurrent_map(resolve, work.intents, limit=forks):
        async for key, group, member in in_turns(_groups_of(resolved, former)):
            found = groups.setdefault(key, group)
            found.members.append(member)
            found.error = found.error or group.error
    return list(groups.values())


class _FormerTitles:
    """Former titles (``was``): the new title of each, and those under which a clip may still be found."""

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
                continue  # another normalization form of the title: the server may know only that one
            self._now.setdefault((ref.database, plain(title)), ref.title)
            self._claims.setdefault((ref.database, plain(title)), []).append(intent)

    def current_title(self, database: str, title: str) -> str:
        """Return the title that a task gives to the clip that has this title."""
        if (database, plain(title)) in self._was:
            return title  # a task gives this title to another clip
        return self._now.get((database, plain(title)), title)

    def chain(self, database: str, title: str) -> dict[str, tuple[str, ...]]:
        """Return the former titles that other tasks give to another clip, each with the oldest titles of that clip."""
        known = (name for name in self._was.get((database, plain(title)), ()) if plain(name) != plain(title))
        return {name: self._oldest(database, name) for name in known if (database, plain(name)) in self._was}

    def _oldest(self, database: str, title: str) -> tuple[str, ...]:
        """Return the former titles, followed back, that no other task gives to a clip."""
        return tuple(name for name in self._followed_back(database, title) if (database, plain(name)) not in self._was)

    def _followed_back(self, database: str, title: str) -> Iterator[str]:
        """Yield the former titles of a title, their former titles, and so on, each once."""
        ahead, seen = [title], set[str]()
        while ahead:
            later = ahead.pop()
            for was in self._was.get((database, plain(later)), ()):
                if was not in seen and plain(was) != plain(later):
                    seen.add(was)
                    ahead.append(was)
                    yield was

    def next_titles(self, database: str, title: str) -> tuple[str, ...]:
        """Return the new title of the clip that has this title now, followed by that of the clip that has that one."""
        found: list[str] = []
        while (database, plain(title)) in self._was and (database, plain(title)) in self._now:
            title = self._now[database, plain(title)]
            if title in found:
                break  # a swap, which `error` reports
            found.append(title)
        return tuple(found)

    def names(self, database: str, title: str) -> tuple[str, ...]:
        """Return a title and its former titles."""
        return (title, *self._was.get((database, plain(title)), ()))

    def error(self, database: str, title: str) -> PlanningError | None:
        """Return the error for titles that are swapped, or for a former title of two titles."""
        for was in self._was.get((database, plain(title)), ()):
            if plain(was) == plain(title):
                continue
            claims = self._claims[database, plain(was)]
            titles = {plain(intent.ref.title) for intent in claims if isinstance(intent.ref, TitleRef)}
            if any(plain(name) == plain(title) for name in self._followed_back(database, title)):
                return PlanningError(
                    f"{title!r} and {was!r} are swapped, and the interface renames one clip at a time by its title",
                    place=claims[-1].source.place,
                    remedy="rename in two runs: give one of the clips a third title first, then both their new titles",
                )
            if len(titles) > 1:
                places = " and ".join(str(intent.source.place) for intent in claims)
                return PlanningError(
                    f"the former title {was!r} is declared for more than one title ({places})",
                    place=claims[-1].source.place,
                    remedy="declare each former title for one title only",
                )
        return None


def _groups_of(resolved: _ResolvedIntent, former: _FormerTitles) -> Iterable[_KeyedMember]:
    """Return the groups of an intent, to be merged with those of the same key."""
    intent, ref = resolved.intent, resolved.intent.ref
    if isinstance(ref, ChannelRef):
        return [(("rss_channel", ref.channel), IntentGroup("rss_channel", "", ref.channel), IntentGroupMember(intent))]
    if isinstance(ref, DatabaseRef):
        return [
            (("database", ref.database), IntentGroup("database", ref.database, ref.database), IntentGroupMember(intent))
        ]
    if resolved.error is not None:
        name = f"{ref.namespace}:{ref.identifier}" if isinstance(ref, IdRef) else _describe(ref)
        failed = IntentGroup("asset", ref.database, name, error=resolved.error)
        return [(("error", ref.database, name, str(intent.source.place)), failed, IntentGroupMember(intent))]
    if isinstance(ref, IdRef):
        return [_group_by_id(resolved, ref)]
    if isinstance(ref, TitleRef):
        return [_group_by_title(ref.database, ref.title, former, IntentGroupMember(intent, ref.title))]
    return (
        _group_by_title(
            ref.database, each.entry.title, former, IntentGroupMember(intent, each.entry.title, each.entry, each.looked)
        )
        for each in resolved.selected
    )


def _group_by_title(database: str, declared: str, former: _FormerTitles, member: IntentGroupMember) -> _KeyedMember:
    title = former.current_title(database, declared)
    error = former.error(database, title)
    group = IntentGroup("asset", database, title, former.names(database, title), error=error)
    group.chain, group.next_titles = former.chain(database, title), former.next_titles(database, title)
    return ("asset", database, plain(title)), group, member


def _group_by_id(resolved: _ResolvedIntent, ref: IdRef) -> _KeyedMember:
    name = f"{ref.namespace}:{ref.identifier}"
    group = IntentGroup("asset", ref.database, name, by_id=(Address(ref.identifier, ref.namespace), resolved.asset))
    return ("id", ref.database, ref.namespace, ref.identifier), group, IntentGroupMember(resolved.intent)


def _describe(ref: TitleRef | SelectRef) -> str:
    return ref.title if isinstance(ref, TitleRef) else f"select {show_folder(ref.folder) or '/'}"


def check_entry(entry: Entry, asset: Asset, source: TaskSource) -> None:
    """Raise ``PlanningError`` where the answer to a title is another clip than the entry of the listing."""
    if fits(entry, asset):
        return
    place = show_folder((*entry.folder, entry.title))
    home = "" if asset.folder is None else f" in {show_folder(asset.folder) or '/'}"
    differ = ", ".join(
        f"{name} is {entry.attributes[name]} in the listing and {asset.attributes[name]} in the answer"
        for name in differing(entry, asset)
    )
    raise PlanningError(
        f"two clips have the title {entry.title!r}: the listing shows the one in {place}, and the server answers with "
        f"another one{home} ({differ or 'the link_id differs'})",
        place=source.place,
        remedy="select another `folder:`, address the clip by a key field with `id:`, or rename one of the two",
    )


# Reading the clips of intents ----------------------------------------------------------------------------------


async def _resolve(
    intent: Intent, server: ServerSpec, reader: Reader, forks: int, answers: XmpAnswers
) -> _ResolvedIntent:
    try:
        if isinstance(intent.ref, IdRef):
            versions.require(server, versions.Feature.KEY_ID)
            address = Address(intent.ref.identifier, intent.ref.namespace)
            return _ResolvedIntent(intent, asset=await reader.read_asset(intent.ref.database, address))
        if isinstance(intent.ref, SelectRef):
            return _ResolvedIntent(intent, selected=await _select(intent, intent.ref, reader, forks, answers))
    except MsautoError as error:
        return _ResolvedIntent(intent, error=error)
    return _ResolvedIntent(intent)


async def _select(
    intent: Intent, ref: SelectRef, reader: Reader, forks: int, answers: XmpAnswers
) -> tuple[_SelectedEntry, ...]:
    entries = await reader.read_select(ref)
    if entries is None:
        raise PlanningError(
            f"folder {show_folder(ref.folder) or '/'} not found in database {ref.database}",
            place=intent.source.place,
            remedy="correct the folder, or create it",
        )

    async def holds(where: Callable[[Facts], bool], entry: Entry) -> tuple[bool, frozenset[str]]:
        return await _holds(where, ref.database, entry, reader, answers, intent.source)

    found = tuple([selected async for selected in _filter_entries(ref, entries, holds, forks)])
    if ref.expect_min is not None or ref.expect_max is not None:
        clips = {identity_of(selected.entry) or plain(selected.entry.title) for selected in found}
        _check_expected(intent, ref, len(clips))
    return found


async def _filter_entries(
    ref: SelectRef, entries: Sequence[Entry], holds: _Condition, forks: int
) -> AsyncIterator[_SelectedEntry]:
    """Yield the entries that fulfil ``where``; a clip is read only where its entry is not enough."""
    where = ref.where
    if where is None:
        async for entry in in_turns(entries):
            yield _SelectedEntry(entry)
        return

    async def look(entry: Entry) -> tuple[bool, frozenset[str]]:
        return await holds(where, entry)

    pending: list[Entry] = []
    async for entry in in_turns(entries):
        facts = Facts(entry=entry)
        try:
            if where(facts):
                yield _SelectedEntry(entry, frozenset(f"fact:{name}" for name in facts.looked))
        except Need:
            pending.append(entry)
    looked = concurrent_map(look, pending, limit=forks)
    index = 0
    async for selected, names in looked:
        if selected:
            yield _SelectedEntry(pending[index], names)
        index += 1


async def _holds(
    where: Callable[[Facts], bool], database: str, entry: Entry, reader: Reader, answers: XmpAnswers, source: TaskSource
) -> tuple[bool, frozenset[str]]:
    async def find() -> FoundClip | None:
        address = Address(entry.title)
        asset = await reader.read_asset(database, address)
        if asset is not None:
            check_entry(entry, asset, source)
        return None if asset is None else FoundClip(asset, address, entry.title)

    layers = Layers(reader, database, find, answers)
    try:
        return await layers.evaluate(where, entry, source), frozenset(layers.looked)
    except NoAssetError:
        return False, frozenset()  # deleted between the listing and the reading


def _check_expected(intent: Intent, ref: SelectRef, count: int) -> None:
    low, high = ref.expect_min, ref.expect_max
    if (low is not None and count < low) or (high is not None and count > high):
        raise PlanningError(
            f"{_describe(ref)} finds {count} assets; expected: {low or 0} to {'any number' if high is None else high}",
            place=intent.source.place,
            remedy="look at the assets with `msauto show`, or correct `expect`",
        )
