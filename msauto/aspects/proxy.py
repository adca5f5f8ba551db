"""Viewing copies (interface, «Web proxy»). Asking makes the server work: never while planning."""

from typing import ClassVar, Literal

from msauto.aspects.arguments import OF_HANDLERS
from msauto.aspects.aspect import Aspect
from msauto.aspects.plan_builder import TASK, PlanContext, Trigger
from msauto.documents.strict_model import Model, need
from msauto.documents.value_types import Name, Value
from msauto.model import requests
from msauto.model.desired import DesiredDownload
from msauto.model.plan import Json


class ProxyOnly(Model):
    """A viewing copy of the asset that changed (interface, «Web proxy»)."""

    hints: ClassVar = OF_HANDLERS

    profile: Value[Literal["WP1", "WP2", "WP3", "WP4", "WP5", "WP6", "WP7", "WP8"]] = need("web profile")
    dest: Value[Name] = need("file to write, relative to the playbook")


class DesiredProxy(DesiredDownload, frozen=True):
    """A viewing copy of an asset as a file (interface, «Web proxy»)."""

    aspect: ClassVar = "proxy"
    profile: str


def plan_proxy(context: PlanContext, desired: DesiredProxy, cause: Trigger = TASK) -> None:
    """Fetch the copy, unless the file on disk was fetched from this clip with the same profile."""
    asked: dict[str, Json] = {"profile": desired.profile}
    if not context.has_file(desired, asked, cause):
        request = requests.get_proxy(context.path, desired.profile)
        context.fetch(desired, asked, request, cause)


ASPECT = Aspect(
    name="proxy",
    module=ProxyOnly,
    declare=lambda task: DesiredProxy(task.source(), task.dest(), task.args.profile),
    run=plan_proxy,
    is_file=True,
    for_good="the file stays where it was saved",
)
