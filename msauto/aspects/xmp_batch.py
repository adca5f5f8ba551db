"""Batches of XMP metadata (interface, «Load XMP metadata in batch»): a database's own, before all of its assets."""

import hashlib
from collections.abc import Mapping

from msauto.aspects.arguments import TaskArguments
from msauto.aspects.aspect import Aspect
from msauto.aspects.comparison import mapping
from msauto.aspects.plan_builder import TASK, Phase, PlanBuilder, answer_told
from msauto.documents.strict_model import Model, need
from msauto.documents.value_types import Name, Value
from msauto.model import requests
from msauto.model.desired import DesiredXmpBatch
from msauto.model.plan import Body, Expectation, Json
from msauto.model.server import ServerSpec

MEDIA_TYPE = "text/xml"


class XmpBatchArgs(Model):
    """XMP metadata to load through a connector (interface, «Load XMP metadata in batch»)."""

    connector: Value[Name] = need("name of the metadata connector")
    src: Value[Name] = need("file to load, relative to the playbook; the same content is loaded only once")


def _declare(task: TaskArguments) -> DesiredXmpBatch:
    name, node = task.args.src, task.node.child("src")
    content = task.files.load(name, node)
    if not content.strip():
        raise node.error(f"the batch file {name!r} is empty", "add XMP metadata to it", kind="file")
    return DesiredXmpBatch(task.source(), task.args.connector, name, content)


def plan_batch(
    server: ServerSpec, database: str, desired: DesiredXmpBatch, memory: Mapping[str, Json], builder: PlanBuilder
) -> None:
    """Load a batch once: the ledger remembers its content. One whose answer was lost only gives a warning."""
    key = f"{desired.connector} {hashlib.sha256(desired.content).hexdigest()}"
    remembered = memory.get(f"xmp_batch:{key}")
    run = mapping(remembered).get("unverified")
    if run is not None:
        answer = answer_told(mapping(remembered))
        builder.warnings.append(
            f"{database}: the batch {desired.src} was sent to {desired.connector} by run {run} and {answer}. "
            "It may be loaded, and is not sent again automatically\ncheck the server. If it is loaded, "
            "--forget-pending ends this warning. If it is not, change the file, for example a comment: "
            "different content is a new batch"
        )
    if remembered:
        return
    requests.require(server, requests.Feature.LOAD_XMP)
    body = Body.of(desired.content, MEDIA_TYPE)
    after: dict[str, Json] = {"connector": desired.connector, "bytes": len(desired.content), "sha256": body.sha256}
    number = builder.run("xmp_batch", desired.src, after, desired.source, TASK)
    request = requests.load_xmp(database, desired.connector, body)
    builder.send(Phase.BATCH, request, [number], Expectation("xmp_batch", key, "once", visible=False))


ASPECT = Aspect(
    spoils="xmp:",  # it may write to any clip of the database
    name="xmp_batch",
    module=XmpBatchArgs,
    declare=_declare,
    remember=lambda expect, _: iter([(f"xmp_batch:{expect.key}", True)]),
    runs_once=True,
    for_good="what a batch loaded is not known",
)
