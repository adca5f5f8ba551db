"""The plan of one server, here or on a worker of a cluster."""

from __future__ import annotations

from msgspec import Struct, structs

from msauto.model.desired import ServerIntents
from msauto.model.events import Event, Notify, TargetPlanned
from msauto.model.ports import Clock, HashFile, Memory
from msauto.planning.asset_survey import SurveyContext
from msauto.planning.survey import Survey, survey
from msauto.planning.target_choice import TargetChoice
from msauto.secrets.redacted_plans import SecretMemory
from msauto.secrets.redaction import Secrets
from msauto.server.client import AsyncMediaServer
from msauto.server.reader import ServerReader


class ServerPlanning(Struct, frozen=True):
    """How to plan one server; evaluating the intents adds to ``secrets``, and ``choice`` remembers what it matched."""

    work: ServerIntents
    secrets: Secrets
    choice: TargetChoice
    clock: Clock
    forks: int | None
    find_links: bool
    forget: bool


async def plan_server(given: ServerPlanning, memory: Memory, hash_file: HashFile, notify: Notify) -> Survey:
    """Plan one server. Sends GET and HEAD only. No event holds a secret."""
    spec, known = given.work.server, given.secrets

    def notify_redacted(event: Event) -> None:
        if isinstance(event, TargetPlanned) and event.error:
            event = structs.replace(event, error=known.redact_message(event.error))
        notify(event)

    async with AsyncMediaServer(spec, read_only=True, gives_up=True) as client:
        context = SurveyContext(
            spec,
            ServerReader(client, clock=given.clock),
            SecretMemory(memory, known),
            find_links=given.find_links,
            hash_file=hash_file,
            forget=given.forget,
            secrets=known,
            choice=given.choice,
            left_out=given.work.left_out,
            notify=notify_redacted,
        )
        found = await survey(given.work.intents, context, forks=given.forks or spec.connections)
        return structs.replace(found, is_unreachable=client.unreachable)
