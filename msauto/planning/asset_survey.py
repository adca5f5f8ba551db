"""The survey of one asset: find the clip, evaluate what the tasks declare, read the rest, compare."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from msgspec import Struct, structs

from msauto.aspects import ASPECTS, merge_desired
from msauto.aspects.comparison import mapping
from msauto.aspects.plan_builder import PENDING_PREFIX, certain, refuse
from msauto.errors import MsautoError, PlanningError
from msauto.model.desired import Desired, DesiredAsset, DesiredDownload, DesiredOperation, TaskSource
from msauto.model.events import Notify
from msauto.model.facts import NoAssetError
from msauto.model.identity import plain, same_text
from msauto.model.plan import Address, Json, Settlement, Target, TargetId
from msauto.model.ports import HashFile, LiveTarget, Memory, Reader
from msauto.model.server import ServerSpec
from msauto.model.timecode import TimecodeError
from msauto.planning.asset_plan import (
    AssetPlanner,
    LocatedAsset,
    context_of,
    handlers_in_doubt,
    notified,
    pending_calls,
    title_after,
)
from msauto.planning.clip_finder import ClipFinder, Declared, PostponedError, check_guard, former_titles
from msauto.planning.deletion import check_deletion, check_link_titles, places_of, with_places
from msauto.planning.fact_layers import Layers, XmpAnswers
from msauto.planning.target_groups import IntentGroup, IntentGroupMember
from msauto.planning.target_reading import hide_if_secret, read_folders, read_xmp_fields
from msauto.planning.titles import SimilarTitles, TargetChoice
from msauto.secrets.redaction import Secrets

State = Literal["changed", "unchanged", "skipped", "left out"]


@dataclass(frozen=True, slots=True)
class SurveyContext:
    """What the survey of one server works with.

    ``find_links`` also reads the links of assets that are deleted or lose something, for limits that protect folders.
    ``hash_file`` finds downloads that exist already. ``pending`` are the assets (database, title) that an earlier run
    left something pending for; ``forget`` treats that as settled. ``answers`` is how this server reports XMP fields.
    ``secrets`` are those known so far. ``choice`` narrows the run to some targets. ``similar`` finds live
    titles for errors. ``notify`` receives the progress.
    """

    server: ServerSpec
    reader: Reader
    memory: Memory
    find_links: bool = False
    hash_file: HashFile | None = None
    pending: frozenset[tuple[str, str]] = frozenset()
    forget: bool = False
    answers: XmpAnswers = field(default_factory=XmpAnswers)
    secrets: Secrets = field(default_factory=Secrets)
    similar: SimilarTitles = field(default_factory=SimilarTitles)
    choice: TargetChoice = field(default_factory=TargetChoice)
    notify: Notify = lambda _: None


class SurveyedTarget(Struct):
    """The outcome of one target; ``target`` is kept only if it changes or is in error.

    ``clip`` is a hash of what identifies the clip, to detect two names of one clip; ``None`` if unknown.
    """

    state: State
    target: Target | None = None
    warnings: tuple[str, ...] = ()
    settlements: tuple[Settlement, ...] = ()
    clip: int | None = None

    @classmethod
    def of(cls, target: Target, warnings: tuple[str, ...], settlements: tuple[Settlement, ...] = ()) -> SurveyedTarget:
        """Keep the target if it has changes."""
        if target.changes:
            return cls("changed", target, warnings, settlements)
        return cls("unchanged", None, warnings, settlements)


async def survey_asset(context: SurveyContext, group: IntentGroup) -> SurveyedTarget:
    """Plan one asset; an error becomes its ``error``. Raises ``DistinctClipsError`` for a group of several clips."""
    finder = ClipFinder(context.reader, group)
    try:
        outcome = await _survey(context, group, finder)
    except PostponedError as postponed:
        outcome = SurveyedTarget("left out", warnings=(str(postponed),))
    except (MsautoError, TimecodeError) as error:
        outcome = SurveyedTarget("changed", in_error(context, group, error))
    outcome.clip = finder.clip
    return outcome


def in_error(context: SurveyContext, group: IntentGroup, error: Exception) -> Target:
    """Return a target that cannot be planned."""
    address = group.by_id[0] if group.by_id else Address(group.name)
    target = Target(context.server.name, group.database, group.kind, group.name, error=str(error))
    return structs.replace(target, address=address, address_after=address)


async def _survey(context: SurveyContext, group: IntentGroup, finder: ClipFinder) -> SurveyedTarget:
    layers = Layers(context.reader, group.database, finder, context.answers)
    declared, unknown = await _evaluate(layers, group, finder)
    pending = _has_pending(context, group)
    if not declared and not unknown and not pending:
        return SurveyedTarget("skipped")
    clip = await layers.clip()
    here, away = await finder.divide(declared)
    missing = await _check_missing(context, group, away, unknown)
    if clip is None or (not here and not pending):
        warnings = dict.fromkeys(m.intent.if_missing for m in (*(m for m, _ in away), *unknown))
        state = missing if declared or unknown else "skipped"
        return SurveyedTarget(state, warnings=(*finder.warnings, *filter(None, warnings)))
    group = finder.named()
    here = [(member, finder.renamed(member, desired)) for member, desired in here]
    finder.check_aliases(here)
    looked = frozenset().union(layers.looked, *(member.looked for member in group.members))
    found, *aliases = (LocatedAsset(context.server, group.database, *each, looked) for each in (clip, *finder.aliases))
    outcome = await _compare(context, group, layers, found, here, aliases)
    outcome.warnings = (*finder.warnings, *outcome.warnings)
    return outcome


async def _evaluate(
    layers: Layers, group: IntentGroup, finder: ClipFinder
) -> tuple[list[Declared], list[IntentGroupMember]]:
    """Return what each member declares, and the members that need facts of an asset that does not exist."""
    declared: list[Declared] = []
    unknown: list[IntentGroupMember] = []
    evaluated: list[tuple[IntentGroupMember, Desired | None]] = []
    for member in group.members:
        try:
            desired = await layers.evaluate(member.intent.evaluate, member.entry, member.intent.source)
        except NoAssetError:
            unknown.append(member)
        else:
            evaluated.append((member, desired))
            declared += [(member, desired)] if desired is not None else []
    if declared:
        await layers.clip()
    for member, desired in evaluated:
        finder.check_entry(member, desired)
    return declared, unknown


async def _check_missing(
    context: SurveyContext, group: IntentGroup, away: Sequence[Declared], unknown: Sequence[IntentGroupMember]
) -> State:
    """Return the state for intents whose asset is missing. Raises ``PlanningError`` unless they allow for that."""
    if not away and not unknown:
        return "unchanged"
    if not await context.reader.has_database(group.database):
        raise database_not_found(context.server, group.database, group.members[0].intent.source)
    state: State = "unchanged"
    for member, desired in (*away, *((member, None) for member in unknown)):
        intent, asset = member.intent, desired if isinstance(desired, DesiredAsset) else None
        if intent.absent or (asset is not None and not asset.present):
            continue
        if intent.missing != "skip" and (asset is None or asset.missing != "skip"):
            was = former_titles(member)
            former = f" (nor {', '.join(map(repr, was))})" if was else ""
            raise refuse(
                f"server {context.server.name}, database {group.database}: asset "
                f"{member.title or group.name!r}{former} not found",
                intent.named or intent.source,
                await _remedy_for_missing(context, group, member.title),
            )
        state = "skipped"
    return state


async def _remedy_for_missing(context: SurveyContext, group: IntentGroup, title: str | None) -> str:
    """Return what to do about a missing asset: the nearest live titles, if it is named by its title."""
    near = await context.similar.near(context.reader, group.database, title) if title else ()
    remedy = "correct the title, or write `missing: skip`"
    if not near:
        return remedy
    *others, last = map(repr, near)
    named = f"{', '.join(others)} or {last}" if others else last
    return f"did you mean {named}? Else {remedy}"


def database_not_found(server: ServerSpec, database: str, source: TaskSource) -> PlanningError:
    """Return the error of a database that the server does not have."""
    return refuse(
        f"server {server.name}: database {database!r} not found",
        source,
        "list the databases with `msauto show databases`",
    )


# Comparing -----------------------------------------------------------------------------------------------------


async def _compare(
    context: SurveyContext,
    group: IntentGroup,
    layers: Layers,
    found: LocatedAsset,
    here: Sequence[Declared],
    aliases: Sequence[LocatedAsset],
) -> SurveyedTarget:
    declared = [desired for _, desired in here if isinstance(desired, DesiredAsset)]
    runs = [desired for _, desired in here if isinstance(desired, DesiredOperation)]
    desired = None
    if declared:
        desired = merge_desired(declared, found.asset, found.title)
        if not _finalized(found, declared):
            return SurveyedTarget("skipped")
        if desired.folder is not None:
            check_guard(found.asset, found.title, desired.folder)
            found = structs.replace(found, looked=found.looked | {"folder"})
    entries = None
    if desired is not None and not desired.present:
        chosen = [member.entry for member, _ in here if member.entry is not None]
        entries = await check_deletion(context.reader, found, chosen, desired)
        if entries is None:
            return SurveyedTarget("unchanged", warnings=desired.notes)
    live = await _read_rest(context, layers, found, desired)
    recalled = recall(context.memory, found, group.names, aliases, forget=context.forget)
    files = await _read_files(context, runs, recalled)
    batch = context.answers.batches.get(group.database)
    places = () if entries is None else places_of(found.asset, found.title, entries)
    hide = context.secrets.mask
    plan_context = context_of(found, desired, live, recalled.items, files=files, batch=batch, places=places, hide=hide)
    plan = AssetPlanner(found, desired, plan_context)
    plan.tasks(runs)
    await check_link_titles(context.reader, found.database, found.asset, found.title, plan.builder.changes)
    warnings = await _call_handlers(plan, layers, group, here, desired, recalled.items)
    live = structs.replace(live, xmp=layers.with_xmp(live.xmp), links=layers.links or live.links)
    target, more = plan.target(layers.looked, live)
    if context.find_links and entries is None:
        target = await with_places(target, found.asset, context.reader)
    target = hide_if_secret(target, live, context.secrets)
    outcome = SurveyedTarget.of(target, (*more, *warnings), recalled.settlements)
    if not target.changes and (plan.held or not here):
        outcome.state = "left out" if plan.held else "skipped"
    return outcome


async def _read_files(
    context: SurveyContext, runs: Sequence[DesiredOperation], recalled: RecalledMemory
) -> dict[str, str | None]:
    """Return the hashes of the files that were downloaded before: only these may have the desired content."""
    downloads = [run for run in runs if isinstance(run, DesiredDownload)]
    known = {run.dest for run in downloads if f"{run.aspect}:{run.dest}" in recalled.items}
    return {dest: await context.hash_file(dest) for dest in known} if context.hash_file else {}


def _has_pending(context: SurveyContext, group: IntentGroup) -> bool:
    """Whether an earlier run left something pending for the asset of these tasks."""
    if not context.pending:
        return False
    answer = group.by_id[1] if group.by_id else None
    names = {*group.names, group.name, (answer.title if answer else None) or group.name}
    return any((group.database, plain(name)) in context.pending for name in names)


async def _call_handlers(
    plan: AssetPlanner,
    layers: Layers,
    group: IntentGroup,
    here: Sequence[Declared],
    desired: DesiredAsset | None,
    items: Mapping[str, Json],
) -> list[str]:
    """Plan the handlers that the changes notify and those that are pending; return warnings about the others."""
    known = [handler for member in group.members for handler in member.intent.notify]
    if not known and not any(item.startswith(PENDING_PREFIX) for item in items):
        return []
    declared = [(member.intent.notify, each) for member, each in here]
    called = notified(declared, desired, plan.builder.changes)
    surely = notified(declared, desired, certain(plan.builder.changes))
    in_doubt = handlers_in_doubt(items, called) if plan.deleting else []
    if in_doubt:
        plan.hold()
        return [f"{group.name!r} is not deleted: {warning}" for warning in in_doubt]
    calls, warnings = pending_calls(items, known, called, surely)
    runs = [await layers.evaluate(call.handler.evaluate, None, call.handler.source) for call in calls]
    for call, run in zip(calls, runs, strict=True):
        if isinstance(run, DesiredOperation):
            plan.handler(run, call.handler.name, call.pending)
    return [f"{group.name}: {warning}" for warning in warnings]


def _finalized(found: LocatedAsset, declared: Sequence[DesiredAsset]) -> bool:
    """Whether to go on; a clip still being recorded is an error unless all tasks skip or allow it."""
    strictest = min(declared, key=lambda desired: ("error", "skip", "allow").index(desired.unfinalized))
    if found.asset.finalized is False and strictest.unfinalized == "error":
        raise refuse(
            f"{found.title!r} is still being recorded (finalized is false)",
            strictest.source,
            "wait until it is finalized, or write `unfinalized: skip` or `unfinalized: allow`",
        )
    return found.asset.finalized is not False or strictest.unfinalized == "allow"


async def _read_rest(
    context: SurveyContext, layers: Layers, found: LocatedAsset, desired: DesiredAsset | None
) -> LiveTarget:
    """Read what only the comparison needs: XMP fields, the folders of links, all links."""
    xmp, links = layers.xmp, layers.links
    if desired is None:
        return LiveTarget(asset=found.asset, xmp=xmp, links=links)
    title = title_after(found, desired)
    reads = [ASPECTS[name].reads(part, found.asset, title) for name, part in desired.parts.items()]
    names = frozenset[str]().union(*(each.xmp for each in reads))
    if names and xmp is None and found.database not in context.answers.batches:
        xmp = await read_xmp_fields(context.reader, found.database, found.address, names)
    if links is None and (any(each.links for each in reads) or not desired.present):
        links = await context.reader.read_links(found.database, found.asset)
    folders = await read_folders(
        context.reader.read_folder, found.database, dict.fromkeys(folder for each in reads for folder in each.folders)
    )
    return LiveTarget(asset=found.asset, xmp=xmp, folders=folders, links=links)


# What the ledger remembers -------------------------------------------------------------------------------------


class RecalledMemory(Struct, frozen=True):
    """The items by ``aspect:key``, and the settlements of items that are dropped."""

    items: Mapping[str, Json]
    settlements: tuple[Settlement, ...] = ()


def recall(
    memory: Memory, found: LocatedAsset, names: Iterable[str], aliases: Iterable[LocatedAsset] = (), *, forget: bool
) -> RecalledMemory:
    """Return what is remembered of an asset; ``forget`` settles what is pending or in doubt.

    ``aliases`` are other entries of the clip: commands that ran under their names count.
    """
    items: dict[str, Json] = {}
    settlements: list[Settlement] = []
    former = [name for name in names if not same_text(name, found.title)]
    mine = [found.id(name) for name in (*reversed(former), found.title)]
    for target in (*(alias.id(alias.title) for alias in aliases), *mine):
        known, settled = recall_settled(memory, target, forget=forget)
        items |= {item: value for item, value in known.items() if target in mine or item.startswith("command:")}
        settlements += [each for each in settled if target in mine or each.item.startswith("command:")]
    return RecalledMemory({name: value for name, value in items.items() if value is not None}, tuple(settlements))


def recall_settled(memory: Memory, target: TargetId, *, forget: bool) -> tuple[dict[str, Json], list[Settlement]]:
    """Return the items of a target; with ``forget`` as settled: pending ones dropped, sent ones run."""
    items = dict(memory.recall(target))
    settlements = [
        Settlement(target, item, None if item.startswith("pending:") else True)
        for item, value in (items.items() if forget else ())
        if item.startswith("pending:") or mapping(value).get("unverified")
    ]
    return items | {each.item: each.value for each in settlements}, settlements
