"""The whole plan: the surveys of all servers in the order of the run, and what it may not do without a flag."""

from __future__ import annotations

import os.path
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from msgspec import structs

from msauto.aspects import ASPECTS, is_deletion
from msauto.model.desired import InputFile, ResolvedPlaybooks
from msauto.model.identity import plain
from msauto.model.live import Folder, parse_folder, show_folder
from msauto.model.plan import InputHash, Limits, Plan, PlannedServer, Refusal, Target
from msauto.planning.survey import Survey
from msauto.secrets.redaction import HIDDEN, Secrets


def assemble(
    resolved: ResolvedPlaybooks,
    surveys: Sequence[Survey],
    *,
    created: str,
    version: str,
    limits: Limits,
) -> Plan:
    """Return the plan of all surveys, with refusals. ``created`` is ISO 8601, ``version`` that of msauto."""
    urls = {work.server.name: work.server.url for work in resolved.work}
    targets = (target for survey in surveys for target in survey.targets)
    plan = Plan(
        created=created,
        msauto=version,
        inputs=tuple(_hash_of(file, resolved.secrets) for file in resolved.inputs),
        targets=_refuse_shared_files(sorted(targets, key=lambda target: (target.batch, target.kind != "database"))),
        unchanged=sum(survey.unchanged for survey in surveys),
        kept=sum(survey.kept for survey in surveys),
        skipped=sum(survey.skipped for survey in surveys),
        left_out=sum(survey.left_out for survey in surveys),
        reads=sum(survey.reads for survey in surveys),
        warnings=(
            *resolved.warnings,
            *(f"{survey.server}: {warning}" for survey in surveys for warning in survey.warnings),
        ),
        servers=tuple(PlannedServer(each.server, each.unchanged, urls.get(each.server, "")) for each in surveys),
        batches=resolved.batches,
        settlements=tuple(settlement for survey in surveys for settlement in survey.settlements),
        secrets=resolved.secrets,
    )
    return structs.replace(plan, refusals=refusals(plan, limits))


def _hash_of(file: InputFile, secrets: Secrets) -> InputHash:
    """Return a file as the plan names it, without the hash if it holds a secret that could be guessed from it."""
    may_hold = secrets and (file.content is None or secrets.occurs_in(file.content.decode("utf-8", "replace")))
    return InputHash(file.path, HIDDEN if may_hold else file.sha256)


# Downloads -----------------------------------------------------------------------------------------------------


def _refuse_shared_files(targets: Sequence[Target]) -> tuple[Target, ...]:
    """Return the targets; two downloads into one file are an error of both of their targets."""
    writers: dict[str, list[tuple[int, str]]] = {}
    for number, target in enumerate(targets):
        for request in (each for each in target.requests if each.dest is not None):
            place = str(target.changes[request.changes[0]].source.place)
            writers.setdefault(os.path.normpath(request.dest or ""), []).append((number, place))
    refused = list(targets)
    for dest, those in writers.items():
        shown = [f"{targets[number].server} {targets[number].name!r} ({place})" for number, place in those[:2]]
        more = f" and {len(those) - 2} more" if len(those) > 2 else ""
        error = (
            f"{those[0][1]}: {len(those)} downloads have the same destination {dest}: {' and '.join(shown)}{more}\n"
            "  → make `dest` unique, with {{ asset.title }} or {{ inventory_hostname }}"
        )
        for number in {number for number, _ in those} if len(those) > 1 else ():
            refused[number] = structs.replace(targets[number], changes=(), requests=(), error=error)
    return tuple(refused)


# Limits -------------------------------------------------------------------------------------------------------------


EMPTIED = 3
"""Emptying a list of at least this many items needs a flag."""


def refusals(plan: Plan, limits: Limits) -> tuple[Refusal, ...]:
    """Return each limit that the plan exceeds, with the flag that allows it."""
    changes = [change for target in plan.targets for change in target.changes]
    found: list[Refusal] = []
    deleted = [change for change in changes if is_deletion(change)]
    if (count := len(deleted)) > limits.delete_assets:
        links = sum(ASPECTS[change.aspect].deletes == "link" for change in deleted)
        found.append(Refusal("delete_assets", limits.delete_assets, count, f"--allow-delete {count}", links))
    removals = _removals(plan, limits, sum(change.losses for change in changes))
    found += [removals] if removals else []
    if limits.requests is not None and plan.requests > limits.requests:
        found.append(Refusal("requests", limits.requests, plan.requests, f"--allow-requests {plan.requests}"))
    for target in (target for target in plan.targets if target.loses):
        glob = next((glob for glob in limits.protected if _is_under(target, glob)), None)
        if glob is not None:
            remedy = f"remove the task, or remove {glob!r} from `protected` in msauto.toml"
            called = f"{target.server} {target.database} {target.name}".strip()
            found.append(Refusal("protected", glob, called, remedy))
    return tuple(found)


def _removals(plan: Plan, limits: Limits, count: int) -> Refusal | None:
    if limits.allow_remove is not None and count <= limits.allow_remove:
        return None
    emptied = [each.count for target in plan.targets for each in target.emptied if each.count >= EMPTIED]
    limit = limits.remove_items if limits.allow_remove is None else limits.allow_remove
    if count > limit:
        return Refusal("remove_items", limit, count, f"--allow-remove {count}")
    return Refusal("empty_list", EMPTIED - 1, max(emptied), f"--allow-remove {count}") if emptied else None


def _is_under(target: Target, glob: str) -> bool:
    """Whether a glob matches a title of the target, or a folder that contains it: its home folder, or a link's."""
    names = [target.name]
    home = None if target.folder is None else parse_folder(target.folder)
    for folder in _possible_folders(home, target.database):
        names += [*_folder_and_parents(folder), show_folder((*folder, target.name))]
    for place in map(parse_folder, target.places):
        names += place[-1:]
        names += [name for path in _possible_folders(place, target.database) for name in _folder_and_parents(path)]
    # A title with brackets or a path with outer slashes also matches literally: a protection that silently misses is
    # worse than one that matches too much.
    forms = {plain(glob), plain(glob).strip("/")}
    return any(name == plain(glob) or any(fnmatchcase(name, form) for form in forms) for name in map(plain, names))


def _possible_folders(folder: Folder | None, database: str) -> Iterator[Folder]:
    """Yield the possible paths of a folder: servers may put the name of the database in front, or omit it."""
    if folder is not None:
        yield folder
        yield (database, *folder)
        if folder[:1] == (database,):
            yield folder[1:]


def _folder_and_parents(folder: Folder) -> Iterator[str]:
    """Yield a folder and all its parents."""
    for depth in range(1, len(folder) + 1):
        yield show_folder(folder[:depth])
