"""What the keys of a saved plan mean: the descriptions of its JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_TARGET = {
    "server": "the server's name in the inventory",
    "database": "the media database; empty for RSS channels",
    "kind": "asset, rss_channel or database",
    "name": "the asset's title, the channel, or the database",
    "link_id": "the server's number of the entry, if it tells one",
    "create_time": "when the clip was created, as the server tells it: a clip recorded anew is another clip",
}
WORDS: Mapping[str, Mapping[str, str]] = {
    "Plan": {
        "format": "always msauto-plan",
        "version": "of this form; it is raised when a reader must know better",
        "created": "when the plan was made, ISO 8601",
        "msauto": "the version of msauto that made it",
        "inputs": "the files that it was made from",
        "summary": "how much there is",
        "refusals": "limits that the plan is over; each names the flag that allows it",
        "warnings": "what a person should know before agreeing",
        "servers": "all servers of the run",
        "targets": "what changes, and what cannot be planned; unchanged targets are counted only",
        "batches": "which servers go together, in order (serial)",
        "settlements": "what the ledger learns of targets by applying, without a request",
        "problems": "why nothing was planned, or applied",
        "result": "what came of the run, where it was applied: such a document is no plan",
        "checksum": "over all of the rest of a plan: what a slip of the hand has changed is refused",
    },
    "Summary": {
        "assets": "assets that change",
        "add": "changes that add",
        "change": "changes that change",
        "delete": "changes that remove",
        "run": "commands and the like that are run",
        "unchanged": "targets that are as wanted",
        "skipped": "targets that are not there, or still recorded, where the playbook says skip",
        "left_out": "targets that must wait for another run; a warning says why",
        "errors": "targets that cannot be planned",
        "requests": "requests that applying sends",
        "reads": "requests that planning has sent",
    },
    "Input": {"path": "as it was given", "sha256": "of its bytes, in hex; *** for one that holds a secret"},
    "Refusal": {
        "code": "which limit",
        "limit": "what is allowed",
        "count": "what the plan would do",
        "remedy": "the flag that allows it",
    },
    "PlanProblem": {
        "code": "what kind: input, usage, planning, refused, locked, ledger, server, error",
        "message": "what is wrong",
        "file": "where, if it is in a file",
        "line": "from 1; 0 is the whole file",
        "column": "from 1",
        "remedy": "what to do",
    },
    "Server": {"name": "in the inventory", "url": "where it was", "unchanged": "targets of it that are as wanted"},
    "Batch": {
        "play": "the play's name",
        "servers": "those that go together",
        "max_fail": "the percentage of failed servers above which the run ends",
        "fatal": "one failed server ends the run",
    },
    "Settlement": {**_TARGET, "item": "what is learned", "value": "its value"},
    "Target": {
        **_TARGET,
        "folder": "the asset's home folder",
        "fingerprint": "of all that was looked at: what has changed since is stale",
        "changes": "the differences",
        "requests": "what is sent, in order",
        "error": "why it cannot be planned",
        "address": "how requests address it",
        "address_after": "how they address it once its title has changed",
        "looked": "what the fingerprint covers",
        "rate": "frames a second, as a fraction: 25/1",
        "wait": "seconds that the proof may wait for the archive",
        "emptied": "lists that exactly would empty",
        "places": "folder and title of every other entry that shows the asset",
        "batch": "the number of its batch",
        "result": "what came of it, where it was applied",
    },
    "Address": {"name": "a title, or a value of the key field", "namespace": "the key field; empty for a title"},
    "Emptied": {"aspect": "which list", "count": "how many items it had"},
    "Change": {
        "action": "add, change, delete or run",
        "aspect": "what of the target",
        "key": "which one: the field's name, the segment's number, the marker's uid, ...",
        "before": "the value that is there",
        "after": "the value that is wanted",
        "basis": "where before comes from: live, ledger (the server does not report it), none (never known)",
        "reversible": "whether undo can take it back",
        "source": "where the playbook says it",
        "exactly": "it goes because exactly does not name it",
        "handler": "the handler that runs",
        "pending": "the earlier run that left the handler undone",
        "secret": "its values are secret and shown as ***; it cannot be undone, for the earlier one is not kept",
    },
    "Source": {
        "file": "the file",
        "line": "from 1; 0 is the whole file",
        "column": "from 1",
        "task": "the task's name",
    },
    "Request": {
        "method": "of HTTP",
        "path": "with the query, escaped: sent byte for byte",
        "changes": "which changes it makes, as indices into changes",
        "body": "what is sent along",
        "expect": "what reading again must show",
        "guarded": "sent only once all that the requests before it expect has been seen",
        "dest": "the file that the answer is saved as",
        "secret": "it sends a secret, shown as ***: a plan with such a request cannot be applied",
        "result": "what came of it, where the plan was applied",
    },
    "Body": {
        "sha256": "of the bytes, in hex",
        "media_type": "of the content",
        "text": "the content, if it is text",
        "base64": "the content, if it is none",
    },
    "Expect": {
        "aspect": "what of the target",
        "key": "which one",
        "want": "what it must be; null: gone",
        "visible": "false where the server does not report it",
        "not_uids": "markers that were there before: a new one has another uid",
        "secret": "what it must be is secret: reading cannot be compared with it",
        "kept": "what a changed marker had and no task names: it must not be gone",
    },
}
_NUMBER = {"type": "integer", "minimum": 0}


def described(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return pydantic's schema of a plan under plain names, each key with what it means; ``KeyError`` for another."""
    models = {name.lstrip("_"): model for name, model in schema["$defs"].items()}
    models["Summary"] = _whole_summary(models["Summary"])
    told = {name: _told(name, model) for name, model in models.items()}
    body = {key: value for key, value in _told("Plan", schema).items() if key not in {"$defs", "title"}}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "msauto plan"}
    renamed: dict[str, Any] = _renamed({**head, **body, "$defs": told})
    return renamed


def _whole_summary(model: Mapping[str, Any]) -> dict[str, Any]:
    """Return the summary with the counts that are told and, being countable, never read again."""
    return {**model, "properties": {name: model["properties"].get(name, _NUMBER) for name in WORDS["Summary"]}}


def _told(name: str, model: Mapping[str, Any]) -> dict[str, Any]:
    if "properties" not in model:
        return {key: value for key, value in model.items() if key != "title"}
    words = WORDS[name]
    properties = {
        key: {**{part: each for part, each in value.items() if part != "title"}, "description": words[key]}
        for key, value in model["properties"].items()
    }
    return {**{key: value for key, value in model.items() if key != "title"}, "properties": properties}


def _renamed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain_ref(each) if key == "$ref" else _renamed(each) for key, each in value.items()}
    return [_renamed(each) for each in value] if isinstance(value, list) else value


def _plain_ref(ref: str) -> str:
    return ref.replace("#/$defs/_", "#/$defs/")
