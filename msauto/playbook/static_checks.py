"""What can be said of a task before anything is rendered."""

from __future__ import annotations

from typing import Any

from msauto.playbook.asset_checks import check_asset
from msauto.playbook.document import Problems, Spot
from msauto.playbook.rss_module import check_rss
from msauto.playbook.schema import read_as
from msauto.playbook.schema_asset import AssetArgs
from msauto.playbook.schema_rss import RssArgs
from msauto.playbook.schema_values import as_list
from msauto.playbook.templates import check_template


def check_task(module: str, body: dict[str, Any], spot: Spot) -> None:
    """Check the arguments of a task, templates left alone; raises :class:`InputError` with all that is wrong."""
    problems = Problems()
    inner = spot.child(module)
    with problems.gather():
        if module == "asset":
            problems.add(*check_asset(read_as(AssetArgs, body[module], inner), inner))
        elif module == "rss":
            problems.add(*check_rss(read_as(RssArgs, body[module], inner), inner))
        elif module == "assert":
            _check_expressions(body[module].get("that"), inner.child("that"), problems)
    select = body[module].get("select") if isinstance(body[module], dict) else None
    if isinstance(select, dict) and "where" in select:
        _check_expressions(select["where"], inner.child("select", "where"), problems)
    problems.check()


def _check_expressions(data: Any, spot: Spot, problems: Problems) -> None:
    for index, text in enumerate(as_list(data)):
        with problems.gather():
            check_template(str(text), spot.child(index) if isinstance(data, list) else spot, expression=True)
