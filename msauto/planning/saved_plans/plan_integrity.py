"""Whether the requests of a saved plan do what its changes show: users agree to changes, and limits count them.

A plan file may come from an untrusted source, and its checksum is not a signature. So each request must address its own
target, with the kind, the name and the values that its changes show: a plan that shows a new comment and sends a DELETE
is refused. The expectations of a request are used for verification only, never for safety.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

from msauto.diffing.comparison import plain
from msauto.interface.address import asset_path, channel_path, escape_name, folder_path
from msauto.interface.dialect import Dialect
from msauto.model.live import parse_folder
from msauto.model.plan import Action, Address, Aspect, Change, Plan, Request, Target
from msauto.verification.expectations import mapping, texts

Kinds = frozenset[tuple[Action, Aspect]]

_COMMANDS: Mapping[str, Kinds] = {
    "SETFIELD": frozenset({("change", "field"), ("change", "title"), ("add", "link"), ("change", "link")}),
    "SETUSERFIELDS": frozenset({("change", "xmp")}),
    "CREATESEGMENT": frozenset({("add", "segment"), ("change", "segment")}),
    "DELETESEGMENT": frozenset({("delete", "segment"), ("change", "segment"), ("change", "segmentation")}),
    "CREATESEGMENTATION": frozenset({("add", "segmentation"), ("change", "segmentation")}),
    "CREATEMARKER": frozenset({("add", "marker"), ("change", "marker")}),
    "DELETEMARKER": frozenset({("delete", "marker")}),
    "COPYLINK": frozenset({("add", "link")}),
    "RESTORE": frozenset({("run", "restore")}),
}
"""The changes that a command may make; all other commands need a change of aspect command."""
_RUN: Kinds = frozenset({("run", "command")})
_DIALECTS = (Dialect(), replace(Dialect(), title_address="ns"))
_NOT_TEXTS = frozenset({"command", "uid", "frame", "start_frame", "duration", "seg_num"})
"""Parameters that are not texts of the change: positions as the server counts, and the key."""


def find_undisclosed_request(plan: Plan) -> str | None:
    """Describe the first request that the changes of its target do not show, or a change without a request."""
    for target in plan.targets:
        for request in target.requests:
            if not _matches_changes(request, [target.changes[number] for number in request.changes], target):
                return f"{target.name!r}: the request {request.method} {request.path} is not shown as a change"
        for number, change in enumerate(target.changes):
            requests = [request for request in target.requests if number in request.changes]
            if not any(change.action == "delete" or not _only_removes(request) for request in requests):
                return f"{target.name!r}: no request makes the shown change of {change.aspect} {change.key}"
    return None


def _only_removes(request: Request) -> bool:
    """Whether a request only removes something: a change needs another request that writes it again."""
    return request.method == "DELETE" or "?command=DELETE" in request.path


def _matches_changes(request: Request, changes: list[Change], target: Target) -> bool:
    path, _, text = request.path.partition("?")
    parameters = parse_qsl(text, keep_blank_values=True)
    if not changes:
        return False
    if request.method == "GET":
        return _is_download(request, path, changes, target)
    if len(dict(parameters)) < len(parameters):
        return False  # a duplicate parameter: which one counts is up to the server
    kinds = {(change.action, change.aspect) for change in changes}
    named = dict(parameters)
    if target.kind == "asset" and request.method == "POST":
        command = named.get("command", "")
        allowed = _COMMANDS.get(command, _RUN)
        keys = {change.key for change in changes if change.aspect == "xmp"}
        alone = not keys or keys == set(named) - {"command"}
        of_link = command == "SETFIELD" and any(change.aspect == "link" for change in changes)
        there = _addresses_link(path, changes, target) if of_link else path in _asset_paths(target)
        return there and kinds <= allowed and alone and all(_carries(change, named) for change in changes)
    if target.kind == "asset" and request.method == "DELETE":
        return not text and _is_deletion(path, changes, target)
    if target.kind == "rss_channel":
        return _is_channel_request(request, path, named, kinds, changes, target)
    return request.method == "PUT" and path == folder_path(target.database) and kinds == {("run", "xmp_batch")}


def _asset_paths(target: Target) -> set[str]:
    """Return the paths of an asset's requests: its title before and after a rename, or its id."""
    return {path for address in (target.address, target.address_after) for path in _path_forms(target, address)}


def _path_forms(target: Target, address: Address) -> Iterator[str]:
    for dialect in _DIALECTS:
        yield asset_path(target.database, address, dialect=dialect)


def _is_download(request: Request, path: str, changes: list[Change], target: Target) -> bool:
    shown = all(change.aspect in {"thumbnail", "proxy"} and change.key == request.dest for change in changes)
    return shown and any(path.startswith(f"{known}/") for known in _asset_paths(target))


def _addresses_link(path: str, changes: list[Change], target: Target) -> bool:
    """Whether the path is the title of the link that the change is about."""
    (change, *others) = changes
    if others:
        return False
    title = parse_folder(change.key)[-1:]
    return any(path in _path_forms(target, Address(name)) and path not in _asset_paths(target) for name in title)


def _is_deletion(path: str, changes: list[Change], target: Target) -> bool:
    """Whether a DELETE is shown as a deletion: of the asset, or of a link by its title."""
    (change, *others) = changes
    if others or change.action != "delete":
        return False
    if change.aspect == "asset":
        return path in _asset_paths(target)
    title = parse_folder(change.key)[-1:] if change.aspect == "link" else ()
    return any(path in _path_forms(target, Address(name)) and path not in _asset_paths(target) for name in title)


def _is_channel_request(
    request: Request,
    path: str,
    named: Mapping[str, str],
    kinds: set[tuple[Action, Aspect]],
    changes: list[Change],
    target: Target,
) -> bool:
    channel = channel_path(target.name)
    if {aspect for _, aspect in kinds} != {"rss_item"} or len(changes) != 1:
        return False
    (change,) = changes
    if request.method == "DELETE":
        return (
            path == channel
            and set(named) == {"guid"}
            and (change.action == "change" or _deletes(change, named["guid"]))
        )
    return request.method == "PUT" and path.startswith(f"{channel}/") and _is_item(request, change)


def _deletes(change: Change, guid: str) -> bool:
    return change.action == "delete" and change.key == guid


def _is_item(request: Request, change: Change) -> bool:
    """Whether a body contains what the change shows, line by line, escaped or not; dates have other forms."""
    content = plain(request.body.content.decode("utf-8", "replace")) if request.body else ""
    shown = [plain(_text(value)) for name, value in mapping(change.after).items() if name != "pubDate"]
    lines = [line for text in shown for line in text.split("\n")]
    return change.action in {"add", "change"} and all(line in content or escape(line) in content for line in lines)


def _carries(change: Change, named: Mapping[str, str]) -> bool:
    """Whether the parameters of a command are those of the change: its key, and every text that it shows."""
    if change.aspect in {"field", "title"}:
        name = "clip_name" if change.aspect == "title" else change.key
        return named.get("name") == name and plain(named.get("val", "")) == plain(_text(change.after))
    if change.aspect == "xmp":
        return change.key in named and all(value in named[change.key] for value in texts(change.after))
    if change.aspect == "segment":
        return named.get("seg_num") == change.key and _has_texts(change, named)
    if change.aspect == "marker":
        uid = str(mapping(change.before).get("uid", -1))
        return named.get("uid") == uid and _has_texts(change, named)
    if change.aspect == "link" and named.get("command") == "SETFIELD":
        after = mapping(change.after)
        name = named.get("name", "")
        return name in after and plain(named.get("val", "")) == plain(_text(after[name]))
    if change.aspect == "link":
        *folder, title = parse_folder(change.key) or ("",)
        there = parse_folder(named.get("folder", ""))
        return there == tuple(folder) and named.get("title") in {title, escape_name(title)}
    return change.aspect != "command" or change.key.partition(" ")[0] == named.get("command")


def _has_texts(change: Change, named: Mapping[str, str]) -> bool:
    """Whether the texts of an item are those shown; a changed marker also sends its unchanged texts."""
    after = mapping(change.after)
    sent = {name: value for name, value in named.items() if name not in _NOT_TEXTS}
    unshown = {name for name, value in sent.items() if name not in after and value}
    right = all(plain(_text(after[name])) == plain(value) for name, value in sent.items() if name in after)
    return right and (not unshown or (change.aspect == "marker" and change.action == "change"))


def _text(value: object) -> str:
    return "" if value is None else str(value)
