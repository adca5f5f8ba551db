"""Validated arguments: what is wrong with them beyond their models, and the target and desired state of an asset."""

from __future__ import annotations

from collections.abc import Iterator

from msauto.aspects import ASPECTS
from msauto.aspects.arguments import TaskArguments
from msauto.aspects.rss_arguments import RssArgs, check_items
from msauto.documents.document import SourceNode
from msauto.documents.strict_model import Model
from msauto.documents.value_types import as_list
from msauto.errors import Problem
from msauto.model import desired
from msauto.playbook.schema import asset as schema
from msauto.playbook.templates.conditions import Where


def check_arguments(args: Model, node: SourceNode) -> Iterator[Problem]:
    """Yield what is wrong with the arguments of a task, each at its place."""
    if isinstance(args, schema.AssetArgs):
        for aspect in ASPECTS.values():
            yield from aspect.check(args, node)
    elif isinstance(args, RssArgs):
        yield from check_items(args, node)
    expect = getattr(getattr(args, "select", None), "expect", None)
    low, high = getattr(expect, "min", None), getattr(expect, "max", None)
    if isinstance(low, int) and isinstance(high, int) and low > high:
        yield node.child("select", "expect").problem(f"min {low} is greater than max {high}", "exchange them")


def asset_ref(args: schema.TargetKeys, database: str, where: Where | None) -> desired.Ref:
    """Return which assets the arguments name; title, id, select and was are rendered."""
    if args.title is not None:
        was = as_list(args.was) if isinstance(args, schema.AssetArgs) and args.was is not None else ()
        return desired.TitleRef(database, args.title, tuple(was))
    if args.id is not None:
        namespace, _, identifier = args.id.partition(":")
        return desired.IdRef(database, namespace, identifier)
    if args.select is None:
        raise TypeError("validated arguments name one target")
    select = args.select
    return desired.SelectRef(
        database=database,
        folder=select.folder or (),
        recursive=bool(select.recursive),
        created_after=select.created_after,
        created_before=select.created_before,
        created_within=select.created_within,
        mimetypes=() if select.mimetype is None else tuple(as_list(select.mimetype)),
        where=where,
        expect_min=select.expect.min if select.expect else None,
        expect_max=select.expect.max if select.expect else None,
    )


def desired_asset(args: schema.AssetArgs, node: SourceNode, task: str) -> desired.DesiredAsset:
    """Return the desired state of an asset, each value with its place."""
    given = TaskArguments(args, node, task)
    declared = {name: aspect.declare(given) for name, aspect in ASPECTS.items()}
    return desired.DesiredAsset(
        given.source(),
        {name: part for name, part in declared.items() if part is not None},
        present=args.state != "absent",
        missing=args.missing or "error",
        unfinalized=args.unfinalized or "error",
        lossy=bool(args.lossy),
        folder=None if args.folder is None else desired.Sourced(args.folder, given.source("folder")),
        with_links=bool(args.with_links),
    )
