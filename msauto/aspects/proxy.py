"""Viewing copies (interface, «Web proxy»). Asking makes the server work: never while planning."""

from typing import ClassVar, Literal

from msauto.aspects.arguments import OF_HANDLERS, TaskArguments
from msauto.aspects.aspect import Download
from msauto.aspects.plan_builder import PlanContext, Trigger
from msauto.documents.strict_model import Model, need
from msauto.documents.value_types import Name, Value
from msauto.model import requests
from msauto.model.desired import DesiredDownload
from msauto.model.snapshot import Json


class ProxyOnly(Model):
    """A viewing copy of the asset that changed."""

    hints: ClassVar = OF_HANDLERS

    profile: Value[Literal["WP1", "WP2", "WP3", "WP4", "WP5", "WP6", "WP7", "WP8"]] = need("web profile")
    dest: Value[Name] = need("file to write, relative to the playbook")


class DesiredProxy(DesiredDownload, frozen=True):
    """A viewing copy of an asset as a file."""

    aspect: ClassVar = "proxy"
    profile: str


class Proxies(Download):
    """Viewing copies, by their files."""

    name = "proxy"
    module = ProxyOnly

    def declare(self, task: TaskArguments) -> DesiredProxy:
        """Return the copy that a task asks for."""
        return DesiredProxy(task.source(), task.dest(), task.args.profile)

    def run(self, context: PlanContext, desired: DesiredProxy, cause: Trigger) -> None:
        """Fetch the copy, unless the file on disk was fetched from this clip with the same profile."""
        asked: dict[str, Json] = {"profile": desired.profile}
        if not self.has_file(context, desired, asked, cause):
            self.fetch(context, desired, asked, requests.get_proxy(context.path, desired.profile), cause)
