"""Whether the requests of a saved plan do what its changes show: users agree to changes, and limits count them.

A plan file may come from an untrusted source, and its checksum is not a signature. So each request must address its own
target, with the kind, the name and the values that its changes show. For example, a plan that shows a new comment and
sends a DELETE is refused. The expectations of a request are used for verification only, never for safety.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

from msauto.aspects import ASPECTS
from msauto.diffing.comparison import mapping, text_of
from msauto.interface.address import asset_path, channel_path, folder_path
from msauto.interface.dialect import Dialect
from msauto.model.identity import plain
from msauto.model.live import parse_folder
from msauto.model.plan import Action, Address, AspectName, Change, Plan, Request, Target

Kinds = frozenset[tuple[Action, AspectName]]

_COMMANDS: dict[str, Kinds] = {}
"""What a command may be sent for; all others are run as a change of aspect command."""
for _aspect in ASPECTS.values():
    for _command, _actions in _aspect.commands.items():
        _COMMANDS[_command] = _COMMANDS.get(_command, frozenset()) | {(action, _aspect.name) for action in _actions}
_RUN: Kinds = frozenset({("run", "command")})
_DIALECTS = (Dialect(), replace(Dialect(), title_address="ns"))


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
        return (
            there
            and kinds <= allowed
            and alone
            and all(ASPECTS[change.aspect].says(change, named) for change in changes)
        )
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
    kinds: set[tuple[Action, AspectName]],
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
    shown = [plain(text_of(value)) for name, value in mapping(change.after).items() if name != "pubDate"]
    lines = [line for text in shown for line in text.split("\n")]
    return change.action in {"add", "change"} and all(line in content or escape(line) in content for line in lines)
