"""``msauto schema``: the JSON Schemas, made from the models that validate."""

from __future__ import annotations

import click

from msauto.cli.help import HelpCommand
from msauto.cli.output import print_result
from msauto.planning.saved_plan import plan_schema
from msauto.playbook.schema.json_schema import MODELS, json_schema
from msauto.plugins.batch.batch_result import batch_result_schema
from msauto.report.event_lines import events_schema
from msauto.report.json import dump

_OWN = {"plan": plan_schema, "batch-result": batch_result_schema, "events": events_schema}
"""The schemas of what msauto prints."""


@click.command("schema", cls=HelpCommand)
@click.argument("name", type=click.Choice([*_OWN, *MODELS]), default="playbook")
def command(*, name: str) -> None:
    """Print a JSON Schema, for editors and CI."""
    own = _OWN.get(name)
    print_result(dump(own() if own is not None else json_schema(name)))
