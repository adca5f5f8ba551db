"""Commands that are run rather than compared (interface, «Commands»): what they did cannot be seen by reading.

A partner command gets ``ns`` and ``id`` from the target's address. Without them, the server looks for the title in the
path, and cannot find an open file that is known only by its ``handle``.
"""

from collections.abc import Mapping
from functools import partial
from typing import ClassVar, Literal

from msgspec import structs

from msauto.aspects.arguments import OF_HANDLERS, TaskArguments
from msauto.aspects.aspect import Operation, Shown
from msauto.aspects.comparison import mapping
from msauto.aspects.plan_builder import PlanContext, Trigger, certain
from msauto.documents import key_rules as rule
from msauto.documents.strict_model import Model, key, need
from msauto.documents.value_types import Opt, Text, Value
from msauto.model import requests
from msauto.model.desired import DesiredOperation
from msauto.model.plan import Change
from msauto.model.snapshot import Effect, Json

_WITH_CLIP = frozenset({"PARTNER_EXPORT_VERSION", "PARTNER_COPY_PROGRAM_FIELDS"})
"""Commands that take ``ns`` and ``id``."""


Command = Literal["PARTNER_EXPORT_VERSION", "PARTNER_COPY_PROGRAM_FIELDS", "PARTNER_MOVE_TO_ASSET"]
_PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "PARTNER_EXPORT_VERSION": (),
    "PARTNER_COPY_PROGRAM_FIELDS": (),
    "PARTNER_MOVE_TO_ASSET": ("asset_id", "house_number"),
}
"""The parameters of each command, except ns and id."""
_FROM_THE_TASK = ("ns", "id", "command")
_CARD = "PARTNER_MOVE_TO_ASSET requires the program card"


def _no_parameter(command: str, name: str) -> tuple[str, str]:
    if name == "command":
        return (
            f"{name} cannot be set here: it follows from the task",
            "set the command with the key name",
        )
    if name in _FROM_THE_TASK:
        remedy = 'address the asset by its key: id: "handle:4711"'
        return f"{name} cannot be set here: it follows from the task", remedy
    known = _PARAMETERS[command]
    remedy = "it takes ns and id, which follow from the task"
    if known:
        remedy = f"its parameters are {' and '.join(known)}"
    return f"{command} has no parameter {name!r}", remedy


COMMAND_RULES: tuple[rule.KeyRule, ...] = (
    *(
        rule.when_value("name", name, rule.only_keys("params", known, partial(_no_parameter, name)))
        for name, known in _PARAMETERS.items()
    ),
    rule.when_value(
        "name",
        "PARTNER_MOVE_TO_ASSET",
        rule.needs("name", ("params",), _CARD, "add params: {asset_id: ...}"),
        rule.inside("params", rule.any_of((("asset_id",),), _CARD, "add asset_id to params")),
    ),
)


class CommandOnly(Model):
    """A command on the asset that changed."""

    hints: ClassVar = OF_HANDLERS
    rules: ClassVar = COMMAND_RULES

    name: Value[Command] = need("name of the command")
    params: Opt[dict[str, Value[Text]]] = key(
        "parameters of the command; ns and id are set from the address of the asset"
    )
    run: Opt[Literal["always", "once", "changed"]] = key(
        "always (default); once: once per asset; changed: if this run changes the asset"
    )


class DesiredCommand(DesiredOperation, frozen=True):
    """One of the commands that are run rather than compared."""

    aspect: ClassVar = "command"
    name: str
    params: tuple[tuple[str, str], ...] = ()
    run: Literal["always", "once", "changed"] = "always"


class AssetCommands(Operation):
    """Commands, by their name and parameters."""

    name = "command"
    module = CommandOnly
    for_good = "what a command did is not known"

    def declare(self, task: TaskArguments) -> DesiredCommand:
        """Return the command that a task asks for."""
        args = task.args
        return DesiredCommand(
            task.source(), args.name, tuple((args.params or {}).items()), args.run or "always"
        )

    def run(self, context: PlanContext, desired: DesiredCommand, cause: Trigger) -> None:
        """Run a command: always, once in the life of the asset, or where the asset changes in this run."""
        parts = [desired.name]
        for name, value in desired.params:
            parts.append(f"{name}={context.hide(value)}")
        key = " ".join(parts)
        called = f"{context.title}: the command {key} was sent"
        builder = context.builder
        mode: Json = desired.run
        if mode == "once":
            is_planned = any(change.thing == (self.name, key) for change in builder.changes)
            if is_planned or self.was_sent(context, key, called):
                return
        if mode == "changed" and not cause.handler:
            pending = self._pending_since(context, key, called)
            if pending is None:
                return
            cause = Trigger(pending=pending)
        if mode == "always" and cause.handler:
            mode = "handler"
        feature = requests.feature_of_command(desired.name)
        if feature is not None:
            requests.require(context.server, feature)
        address = context.address
        number = builder.run(self.name, key, dict(desired.params), desired.source, cause)
        sent = desired.params
        if address.namespace and desired.name in _WITH_CLIP:  # without them: the title in the path
            sent = (*sent, ("ns", address.namespace), ("id", address.name))
        request = requests.command(context.path, desired.name, sent)
        effect = Effect(self.name, key, None, mode, visible=False)
        builder.send(cause.phase, request, [number], effect)
        builder.altered.add("files")

    def _pending_since(self, context: PlanContext, key: str, called: str) -> str | None:
        """Return the run whose changes make a command due; ``""`` is this run, ``None`` that it is not due."""
        pending = mapping(context.memory.get(f"pending:command:{key}"))
        run = pending.get("run")
        is_lost = bool(pending.get("unknown"))
        if run is not None and not is_lost:
            return str(run)
        differences = context.builder.differences
        if is_lost:
            differences = certain(differences)
        if differences:
            return ""
        if is_lost:
            self.warn_of_lost_answer(context, called, run, pending, "unless a change is certain")
        return None

    def shown(self, change: Change) -> Shown:
        """Return a change by the name of the command, without the parameters that the key shows."""
        params: dict[str, Json] = {}
        for name, value in mapping(change.after).items():
            if f" {name}={value}" not in change.key:
                params[name] = value
        return Shown(
            change.key, change.key.partition(" ")[0], structs.replace(change, after=params)
        )
