"""Plans as their readers get them."""

from __future__ import annotations

from typing import Any

from msauto.model.plan import Plan
from msauto.planning.saved_plan import plan_document


def plan_to_json(plan: Plan) -> dict[str, Any]:
    """Return the plan as a JSON object, whole; equal plans give equal objects."""
    data = plan_document(plan)
    return data | {"targets": [*data["targets"]]}
