"""``msauto schema``: the JSON Schemas, made from the models that validate."""

from __future__ import annotations

import click

from msauto import sockets
from msauto.cli.help import HelpCommand
from msauto.cli.output import print_result
from msauto.planning.saved_plan import plan_schema
from msauto.playbook.schema.json_schema import MODELS, json_schema
from msauto.report.event_lines import events_schema
from msauto.report.json import dump

_OWN = {"plan": plan_schema, "events": events_schema}
"""The schemas of what the kernel prints."""
_PRINTED = sockets.names_of("schemas")
_NAMES = (*_OWN, *_PRINTED, *MODELS, *sockets.names_of("file_models"))


@click.command("schema", cls=HelpCommand)
@click.argument("name", type=click.Choice(_NAMES), default="playbook")
def command(*, name: str) -> None:
    """Print a JSON Schema, for editors and CI."""
    if name in _OWN:
        schema = _OWN[name]()
    elif name in _PRINTED:
        schema = sockets.find("schemas", name)()
    else:
        schema = json_schema(name)
    print_result(dump(schema))
