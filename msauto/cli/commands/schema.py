"""``msauto schema``: the JSON Schemas, made from the models that validate."""

from __future__ import annotations

import click

from msauto.cli.output import print_result
from msauto.planning.saved_plans.plan_file import plan_schema
from msauto.playbook.schema.json_schema import json_schema
from msauto.report.json import dump


@click.command("schema")
@click.argument("name", type=click.Choice(["playbook", "inventory", "plan", "settings", "batch"]), default="playbook")
def command(*, name: str) -> None:
    """Print a JSON Schema, for editors and CI."""
    print_result(dump(plan_schema() if name == "plan" else json_schema(name)))
