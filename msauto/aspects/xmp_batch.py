"""Batches of XMP metadata (interface, «Load XMP metadata in batch»): a database's own, before all of its assets."""

from msauto.aspects.arguments import TaskArguments
from msauto.aspects.aspect import Operation
from msauto.aspects.plan_builder import Phase, PlanContext, Trigger
from msauto.documents.strict_model import Model, need
from msauto.documents.value_types import Name, Value
from msauto.model import requests
from msauto.model.desired import DesiredXmpBatch
from msauto.model.plan import Body
from msauto.model.snapshot import EVERY, Effect, Json

MEDIA_TYPE = "text/xml"


class XmpBatchArgs(Model):
    """XMP metadata to load through a connector."""

    connector: Value[Name] = need("name of the metadata connector")
    src: Value[Name] = need(
        "file to load, relative to the playbook; the same content is loaded only once"
    )


class XmpBatches(Operation):
    """Batches of a database, by connector and content. One may write to any clip of the database."""

    name = "xmp_batch"
    module = XmpBatchArgs
    for_good = "what a batch loaded is not known"
    may_have = (
        "be loaded",
        "is loaded",
        "is not, change the file, for example a comment: different content is a new batch",
    )

    def declare(self, task: TaskArguments) -> DesiredXmpBatch:
        """Return the batch that a task asks for, with the content of its file."""
        name = task.args.src
        node = task.node.child("src")
        content = task.files.load(name, node)
        if not content.strip():
            raise node.error(
                f"the batch file {name!r} is empty", "add XMP metadata to it", kind="file"
            )
        return DesiredXmpBatch(task.source(), task.args.connector, name, content)

    def run(self, context: PlanContext, desired: DesiredXmpBatch, cause: Trigger) -> None:
        """Load a batch once: the ledger remembers its content. One whose answer was lost only gives a warning."""
        connector = desired.connector
        builder = context.builder
        body = Body.of(desired.content, MEDIA_TYPE)
        key = f"{connector} {body.sha256}"
        what = f"{context.database}: the batch {desired.src} was sent to {connector}"
        if self.was_sent(context, key, what):
            return
        requests.require(context.server, requests.Feature.LOAD_XMP)
        after: dict[str, Json] = {
            "connector": connector,
            "bytes": len(desired.content),
            "sha256": body.sha256,
        }
        number = builder.run(self.name, desired.src, after, desired.source, cause)
        request = requests.load_xmp(context.database, connector, body)
        loaded = Effect(self.name, key, None, "once", visible=False)
        spoiled = Effect("xmp", EVERY, visible=False)
        builder.send(Phase.BATCH, request, [number], loaded, spoiled)
