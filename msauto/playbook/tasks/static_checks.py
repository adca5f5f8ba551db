"""What can be said of a task before anything is rendered."""

from __future__ import annotations

from typing import Any

from msauto.playbook.schema.asset import AssetArgs
from msauto.playbook.schema.rss import RssArgs
from msauto.playbook.schema.validation import well_formed
from msauto.playbook.schema.values import UnrenderedTemplate, as_list
from msauto.playbook.tasks.asset_checks import check_asset
from msauto.playbook.tasks.rss_module import check_rss
from msauto.playbook.templates.environment import check_template
from msauto.playbook.yaml.document import Problems, SourceNode


def check_task(module: str, body: dict[str, Any], node: SourceNode) -> None:
    """Check the arguments of a task beyond its model, templates left alone; raises :class:`InputError` with all of it.

    What the model itself finds is told by whoever validates it.
    """
    problems = Problems()
    inner, data = node.child(module), body.get(module)
    if not isinstance(data, dict):
        return
    if module == "asset" and (asset := well_formed(AssetArgs, data)) is not None:
        problems.add(*check_asset(asset, inner))
    elif module == "rss" and (channel := well_formed(RssArgs, data)) is not None:
        problems.add(*check_rss(channel, inner))
    elif module == "assert":
        _check_expressions(data.get("that"), inner.child("that"), problems)
    select = data.get("select")
    if isinstance(select, dict) and "where" in select:
        _check_expressions(select["where"], inner.child("select", "where"), problems)
    problems.check()


def _check_expressions(data: Any, node: SourceNode, problems: Problems) -> None:
    for index, text in enumerate([] if data is None else as_list(data)):
        if isinstance(text, UnrenderedTemplate):
            continue  # the model tells that it is an expression already
        with problems.gather():
            check_template(str(text), node.child(index) if isinstance(data, list) else node, expression=True)
