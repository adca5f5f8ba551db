"""Group intents that concern the same clip by title, key id or select: one group is one target."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from msgspec import Struct, structs

from msauto.aspects.plan_builder import refuse
from msauto.circuit_breaker import cause_of
from msauto.concurrency import concurrent_list, concurrent_map, in_turns
from msauto.errors import MsautoError, described
from msauto.model import requests
from msauto.model.desired import (
    ChannelRef,
    DatabaseRef,
    IdRef,
    Intent,
    Ref,
    SelectRef,
    TaskSource,
    TitleRef,
)
from msauto.model.facts import Facts, Need, NoAssetError
from msauto.model.identity import compare_clips, is_another_clip, plain, reported_values, same_text
from msauto.model.live import Asset, Entry, show_folder
from msauto.model.plan import Address, Kind
from msauto.model.ports import Reader
from msauto.model.server import ServerSpec
from msauto.planning.fact_layers import FoundClip, Layers, XmpAnswers
from msauto.planning.renames import Rename, Renames, TitleKey
from msauto.planning.similar_titles import not_found

_MOST_FAILED: Final = 1000
_Key = tuple[str, ...]


class IntentGroupMember(Struct, frozen=True, eq=False):
    """One intent for one target: the ``title`` as declared, the ``entry`` that a select found, if any.

    ``listed`` are the facts that ``where`` used, as the listing shows them; ``depends_on`` names those of the
    clip itself.
    """

    intent: Intent
    title: str | None = None
    entry: Entry | None = None
    listed: Mapping[str, Any] = MappingProxyType({})
    depends_on: frozenset[str] = frozenset()

    @property
    def where(self) -> Callable[[Facts], bool] | None:
        """The condition of the select that found it."""
        return self.intent.ref.where if isinstance(self.intent.ref, SelectRef) else None


class AnswerById(NamedTuple):
    """An address by a key id, and what answers to it."""

    address: Address
    asset: Asset | None


class IntentGroup(Struct, eq=False):
    """Everything that is declared for one target.

    ``rename``: the titles that it may have. ``by_id``: for one named by a key id. ``merged``: the groups of one clip
    under different names, each of which is looked up on its own. ``clip``: a hash of what identifies the clip that was
    found, to detect two names of one clip. ``protecting``: tasks that the plan leaves out, whose things the others must
    not remove.
    """

    kind: Kind
    database: str
    name: str
    rename: Rename | None = None
    by_id: AnswerById | None = None
    members: list[IntentGroupMember] = []
    error: MsautoError | None = None
    merged: tuple[IntentGroup, ...] = ()
    clip: int | None = None
    protecting: tuple[IntentGroupMember, ...] = ()

    @property
    def parts(self) -> tuple[IntentGroup, ...]:
        """The groups of one name each."""
        return self.merged or (self,)

    @property
    def names(self) -> tuple[str, ...]:
        """The titles that it may have, former ones last; empty if it is not named by a title."""
        named = [self]
        if self.rename is None:
            named = [part for part in self.merged if part.members]
        names: dict[str, None] = {}
        for part in named:
            if part.rename is not None:
                names |= dict.fromkeys((part.rename.title, *part.rename.was))
        return tuple(names)

    @property
    def is_unknown(self) -> bool:
        """Whether no title of it is known, because its selection or its key id could not be read."""
        return self.error is not None and not self.names

    @property
    def all_names(self) -> tuple[str, ...]:
        """Every name that it is known by, the title in the answer to its key id included."""
        names = [self.name]
        titles: list[str] = []
        for part in self.parts:
            names.append(part.name)
            if part.title_by_id:
                titles.append(part.title_by_id)
        return (*names, *self.names, *titles)

    @property
    def plain_names(self) -> set[str]:
        """All these names as they are compared."""
        return set(map(plain, self.all_names))

    @property
    def title_by_id(self) -> str | None:
        """The title in the answer to its key id."""
        return self.by_id.asset.title if self.by_id and self.by_id.asset else None

    @property
    def naming(self) -> Sequence[IntentGroupMember]:
        """What names the target: of a group that only protects, the tasks that are left out."""
        return self.members or self.protecting

    @property
    def batch(self) -> int:
        """The index of its batch; the first, where several plays declare it."""
        return min([member.intent.batch for member in self.members], default=0)


class _KeyedMember(NamedTuple):
    """A member, the key of its group, and a new group for this key; ``None`` for a title: what group it has follows."""

    key: _Key
    group: IntentGroup | None
    member: IntentGroupMember

    @property
    def title(self) -> TitleKey:
        """The database and the title, of a key that names a title."""
        _, database, title = self.key
        return database, title


def merge_groups(groups: Sequence[IntentGroup]) -> IntentGroup:
    """Return one group for one clip that several groups declare under different names; the first one is planned."""
    first = groups[0]
    merged = IntentGroup(first.kind, first.database, first.name, merged=tuple(groups))
    for group in groups:
        merged.members += group.members
        merged.protecting += group.protecting
        merged.error = merged.error or group.error
    return merged


class Grouping(Struct, frozen=True):
    """Groups what tasks ask of one server; with ``losing_titles``, only the assets of these titles count of selects.

    ``nameless`` takes a warning for each entry of a select that has no title: no request can address it.
    """

    server: ServerSpec
    reader: Reader
    forks: int
    answers: XmpAnswers
    losing_titles: Collection[str] | None = None
    nameless: list[str] = []

    async def groups(self, intents: Sequence[Intent]) -> list[IntentGroup]:
        """Return the groups in the order of the playbooks."""
        if not intents:
            return []
        members = await self._members(intents)
        titles = [keyed.title for keyed in members if keyed.group is None]
        formers: list[TitleKey] = []
        for intent in intents:
            ref = intent.ref
            if isinstance(ref, TitleRef):
                formers += [(ref.database, former) for former in ref.was]
        key_of = TitleKeys(await _titles_apart(self.reader, titles + formers))
        renames = Renames(intents, key_of) if formers else None
        groups: dict[_Key, IntentGroup] = {}
        async for keyed in in_turns(members):
            key, group, member = keyed
            if group is None:
                database, title = keyed.title
                if renames is not None:
                    title = renames.current_title(database, title)
                key = ("asset", *key_of(database, title))
                group = groups.get(key) or _group_titled(database, title, renames)
            merged = groups.setdefault(key, group)
            merged.members.append(member)
            merged.error = merged.error or group.error
        return list(groups.values())

    async def _members(self, intents: Sequence[Intent]) -> list[_KeyedMember]:
        """Return the members of all intents in order; what names no title is asked of the server."""
        without_title = [intent for intent in intents if not isinstance(intent.ref, TitleRef)]
        found = iter(await concurrent_list(self._members_of, without_title, limit=self.forks))
        members: list[_KeyedMember] = []
        async for intent in in_turns(intents):
            ref = intent.ref
            if isinstance(ref, TitleRef):
                member = IntentGroupMember(intent, ref.title)
                members.append(_KeyedMember(named_by(ref), None, member))
            else:
                members += next(found)
        return members

    async def _members_of(self, intent: Intent) -> Iterable[_KeyedMember]:
        """Return the members of an intent without a title, to be merged with those of the same key."""
        ref = intent.ref
        group = IntentGroup(*named_by(ref))
        member = IntentGroupMember(intent)
        if not isinstance(ref, SelectRef | IdRef):
            return [_KeyedMember((group.kind, group.name), group, member)]
        try:
            if isinstance(ref, SelectRef):
                return await self._select(intent, ref)
            requests.require(self.server, requests.Feature.KEY_ID)
            address = Address(ref.identifier, ref.namespace)
            asset = await self.reader.read_asset(ref.database, address)
            group.by_id = AnswerById(address, asset)
        except Exception as error:  # noqa: BLE001 - it is that of one task, and of no other one
            group.error = described(error)
            key = ("error", ref.database, group.name, str(intent.source.place))
            return [_KeyedMember(key, group, member)]
        key = ("id", ref.database, ref.namespace, ref.identifier)
        return [_KeyedMember(key, group, member)]

    async def _select(self, intent: Intent, ref: SelectRef) -> list[_KeyedMember]:
        """Return the entries that fulfil ``where``; a clip is read only where its entry is not enough.

        Of ``losing_titles``, from which something is removed, a ``where`` in error may have chosen any.
        """
        entries = await self.reader.read_select(ref)
        if entries is None:
            raise await not_found(
                self.reader,
                self.server,
                "folder",
                show_folder(ref.folder),
                intent.source,
                ref.database,
            )
        losing = self.losing_titles
        where = ref.where
        if losing is not None and where is not None:
            where = partial(may_choose, where)
        selection = _Selection(intent, ref)
        to_be_read: list[Entry] = []
        async for entry in in_turns(entries):
            if losing is not None and plain(entry.title) not in losing:
                continue
            if not entry.title:
                self.nameless.append(_without_title(entry, intent))
                continue
            try:
                selection.add(_chosen(intent, where, entry))
            except Need:
                to_be_read.append(entry)

        look = partial(self._look_at_clip, intent, ref, where)
        async for looked_at in concurrent_map(look, to_be_read, limit=self.forks):
            selection.add(looked_at)
        selection.check_failed(len(entries))
        if losing is None:
            selection.check_count()
        return selection.keyed_members()

    async def _look_at_clip(
        self, intent: Intent, ref: SelectRef, where: Callable[[Facts], bool] | None, entry: Entry
    ) -> IntentGroupMember | _FailedEntry | None:
        """Return the entry as a member if its clip fulfils ``where``. Raises what shows that the server fails."""

        async def find() -> FoundClip | None:
            address = Address(entry.title)
            asset = await self.reader.read_asset(ref.database, address)
            if asset is None:
                return None
            check_entry(entry, asset, intent.source)
            return FoundClip(asset, address, entry.title)

        layers = Layers(self.reader, ref.database, find, self.answers)
        try:
            if where is None or not await layers.evaluate(where, entry, intent.source):
                return None
        except NoAssetError:
            return None  # deleted between the listing and the reading
        except Exception as error:
            if cause_of(error) in {None, "not found"}:
                return _FailedEntry(entry, error)
            raise
        return IntentGroupMember(
            intent, entry.title, entry, depends_on=frozenset(layers.depends_on)
        )


def _without_title(entry: Entry, intent: Intent) -> str:
    known = "" if entry.link_id is None else f" (link_id {entry.link_id})"
    where = show_folder(entry.folder) or "/"
    what = f"the listing of {where} has an entry without a title{known}"
    return (
        f"{what}: it is left out of {intent.source.description}, because no request can address it"
    )


def _chosen(
    intent: Intent, where: Callable[[Facts], bool] | None, entry: Entry
) -> IntentGroupMember | _FailedEntry | None:
    """Return the entry as a member if it fulfils ``where`` by what the listing shows of it; raises ``Need``."""
    if where is None:
        return IntentGroupMember(intent, entry.title, entry)
    facts = Facts(entry=entry)
    try:
        is_chosen = where(facts)
    except Need:
        raise
    except Exception as error:  # noqa: BLE001 - it is that of one clip, and of no other one
        return _FailedEntry(entry, error)
    return IntentGroupMember(intent, entry.title, entry, facts.depends_on) if is_chosen else None


class _FailedEntry(NamedTuple):
    """An entry of a listing of which a condition fails, or whose clip cannot be read."""

    entry: Entry
    error: Exception

    def as_target(self, intent: Intent, database: str) -> _KeyedMember:
        """Return it as a target in error."""
        title = self.entry.title
        group = IntentGroup("asset", database, title, error=described(self.error))
        member = IntentGroupMember(intent, title, self.entry)
        key = ("error", database, title, str(intent.source.place))
        return _KeyedMember(key, group, member)


class _Selection(Struct):
    """What a select finds: its members, and the entries of which ``where`` fails: each is a target in error.

    But where it fails of all or of very many, or the task expects a count, ``where`` is in error, and so is the task.
    """

    intent: Intent
    ref: SelectRef
    members: list[IntentGroupMember] = []
    failed: list[_FailedEntry] = []

    def add(self, found: IntentGroupMember | _FailedEntry | None) -> None:
        """Add what became of an entry; raises the error of a condition that fails of too many."""
        if isinstance(found, IntentGroupMember):
            self.members.append(found)
        elif found is not None:
            self.failed.append(found)
            if len(self.failed) > _MOST_FAILED:
                raise self.failed[0].error

    def check_failed(self, listed: int) -> None:
        """Raise the error of a condition that fails of all listed entries, or of any where the task expects a count."""
        is_task_in_error = self.ref.expects_count or len(self.failed) == listed
        if self.failed and is_task_in_error:
            raise self.failed[0].error

    def check_count(self) -> None:
        """Raise ``PlanningError`` where the select finds fewer or more clips than its task expects."""
        ref = self.ref
        if not ref.expects_count:
            return
        clips: set[object] = set()
        for member in self.members:
            if member.entry is not None:
                known = reported_values(member.entry)
                clips.add(plain(member.entry.title) if None in known else known)
        low = ref.expect_min or 0
        high = ref.expect_max
        count = len(clips)
        is_too_many = high is not None and count > high
        if count < low or is_too_many:
            most = "any number" if high is None else high
            raise refuse(
                f"{_describe(ref)} finds {count} assets; expected: {low} to {most}",
                self.intent.source,
                "look at the assets with `msauto show`, or correct `expect`",
            )

    def keyed_members(self) -> list[_KeyedMember]:
        """Return the targets in error, then the members."""
        database = self.ref.database
        keyed = [failed.as_target(self.intent, database) for failed in self.failed]
        for member in self.members:
            if member.title is not None:
                keyed.append(_KeyedMember(("asset", database, member.title), None, member))
        return keyed


def _group_titled(database: str, title: str, renames: Renames | None) -> IntentGroup:
    """Return a new group for the asset of a title; ``renames`` if any task names a former title."""
    if renames is None:
        return IntentGroup("asset", database, title, Rename(title))
    error = renames.error(database, title)
    return IntentGroup("asset", database, title, renames.of(database, title), error=error)


class TitleKeys(Struct, frozen=True):
    """Keys of titles, equal for names of one clip: the title after Unicode NFC, or as it is for those ``apart``."""

    apart: Collection[TitleKey]

    def __call__(self, database: str, title: str) -> TitleKey:
        """Return the key of a title."""
        key = database, plain(title)
        return (database, title) if key in self.apart else key


async def _titles_apart(reader: Reader, titles: Iterable[TitleKey]) -> set[TitleKey]:
    """Return the databases and titles, after Unicode NFC, of which several forms are live: each form is a clip.

    Only a title that tasks write in two forms can be one of them, and is read.
    """
    forms_of: dict[TitleKey, set[str]] = {}
    for database, title in titles:
        if not title.isascii():
            forms_of.setdefault((database, plain(title)), set()).add(title)
    apart: set[TitleKey] = set()
    for key, forms in forms_of.items():
        database, _ = key
        if len(forms) > 1 and await _are_apart(reader, database, forms):
            apart.add(key)
    return apart


async def _are_apart(reader: Reader, database: str, forms: Iterable[str]) -> bool:
    """Return whether several titles that are equal to these after Unicode NFC are live."""
    answers: list[Asset] = []
    is_open = False
    for form in sorted(forms):
        try:
            asset = await reader.read_asset(database, Address(form))
        except MsautoError:
            return True  # the error concerns this title alone
        if asset is not None:
            answers.append(asset)
            is_open = is_open or asset.title != form or len(answers) > 1
    # A server that finds both forms of one title may report none: then the answers have those that were asked for.
    for asset in answers[1:]:
        if structs.replace(asset, title=None) != structs.replace(answers[0], title=None):
            return True
    return is_open and len(await titles_like(reader, database, answers[0])) > 1


async def titles_like(reader: Reader, database: str, asset: Asset) -> list[str]:
    """Return the titles that the database lists and that are equal to the asset's after Unicode NFC."""
    entries = await reader.read_entries(database, asset)
    titles = {entry.title for entry in (*entries.same, *entries.namesakes)}
    return sorted([title for title in titles if same_text(title, asset.title)])


def named_by(ref: Ref) -> tuple[Kind, str, str]:
    """Return the kind, the database and the name of what a task asks for."""
    match ref:
        case ChannelRef():
            return "rss_channel", "", ref.channel
        case DatabaseRef():
            return "database", ref.database, ref.database
        case TitleRef():
            return "asset", ref.database, ref.title
        case IdRef():
            return "asset", ref.database, f"{ref.namespace}:{ref.identifier}"
    return "asset", ref.database, _describe(ref)


def _describe(ref: SelectRef) -> str:
    return f"select {show_folder(ref.folder) or '/'}"


def check_entry(entry: Entry, asset: Asset, source: TaskSource) -> None:
    """Raise ``PlanningError`` where the answer to a title is another clip than the entry of the listing."""
    if not is_another_clip(entry, asset, {"link_id"}):
        return
    comparison = compare_clips(entry, asset)
    place = show_folder((*entry.folder, entry.title))
    home = "" if asset.folder is None else f" in {show_folder(asset.folder) or '/'}"
    differences: list[str] = []
    for name in comparison.different:
        listed = entry.attributes[name]
        answered = asset.attributes[name]
        differences.append(f"{name} is {listed} in the listing and {answered} in the answer")
    differ = ", ".join(differences) or f"another link_id, {comparison.evidence}"
    raise refuse(
        f"two clips have the title {entry.title!r}: the listing shows the one in {place}, and the server answers with "
        f"another one{home} ({differ})",
        source,
        "select another `folder:`, address the clip by a key field with `id:`, or rename one of the two",
    )


def may_choose(where: Callable[[Facts], bool], facts: Facts) -> bool:
    """Return whether a condition holds, or is in error: what is left out may then have chosen the clip."""
    try:
        return where(facts)
    except MsautoError:
        return True
