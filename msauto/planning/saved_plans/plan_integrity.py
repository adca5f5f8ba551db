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
from msauto.model.desired import DOWNLOADS
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
            writes = [each for each in requests if each.method != "DELETE" and "?command=DELETE" not in each.path]
            if not (requests if change.action == "delete" else writes):
                return f"{target.name!r}: no request makes the shown change of {change.aspect} {change.key}"
    return None


def _matches_changes(request: Request, changes: list[Change], target: Target) -> bool:
    path, _, text = request.path.partition("?")
    parameters = parse_qsl(text, keep_blank_values=True)
    if not changes:
        return False
    if request.method == "GET":
        shown = all(change.aspect in DOWNLOADS and change.key == request.dest for change in changes)
        return shown and any(path.startswith(f"{known}/") for known in _asset_paths(target))
    if len(dict(parameters)) < len(parameters):
        return False  # a duplicate parameter: which one counts is up to the server
    named = dict(parameters)
    if target.kind == "asset" and request.method == "POST":
        return _is_command(path, named, changes, target)
    if target.kind == "rss_channel":
        return all(
            each.aspect == "rss_item" and _is_channel_request(request, path, named, each, target) for each in changes
        )
    (change, *others) = changes
    if target.kind == "asset" and request.method == "DELETE":
        is_shown = path in _asset_paths(target) if change.aspect == "asset" else _addresses_link(path, change, target)
        return not text and not others and change.action == "delete" and is_shown
    kinds = {(change.action, change.aspect) for change in changes}
    return request.method == "PUT" and path == folder_path(target.database) and kinds == {("run", "xmp_batch")}


def _is_command(path: str, named: Mapping[str, str], changes: list[Change], target: Target) -> bool:
    command = named.get("command", "")
    keys = {change.key for change in changes if change.aspect == "xmp"}
    if command == "SETFIELD" and any(change.aspect == "link" for change in changes):
        there = len(changes) == 1 and _addresses_link(path, changes[0], target)
    else:
        there = path in _asset_paths(target)
    return (
        there
        and {(change.action, change.aspect) for change in changes} <= _COMMANDS.get(command, _RUN)
        and (not keys or keys == set(named) - {"command"})
        and all(ASPECTS[change.aspect].matches(change, named) for change in changes)
    )


def _asset_paths(target: Target) -> set[str]:
    """Return the paths of an asset's requests: its title before and after a rename, or its id."""
    return {path for address in (target.address, target.address_after) for path in _path_forms(target, address)}


def _path_forms(target: Target, address: Address) -> Iterator[str]:
    for dialect in _DIALECTS:
        yield asset_path(target.database, address, dialect=dialect)


def _addresses_link(path: str, change: Change, target: Target) -> bool:
    """Whether the path is the title of the link that the change is about."""
    title = parse_folder(change.key)[-1:] if change.aspect == "link" else ()
    return any(path in _path_forms(target, Address(name)) and path not in _asset_paths(target) for name in title)


def _is_channel_request(request: Request, path: str, named: Mapping[str, str], change: Change, target: Target) -> bool:
    channel = channel_path(target.name)
    if request.method == "DELETE":
        is_shown = change.action == "change" or (change.action == "delete" and change.key == named.get("guid"))
        return path == channel and set(named) == {"guid"} and is_shown
    return request.method == "PUT" and path.startswith(f"{channel}/") and _is_item(request, change)


def _is_item(request: Request, change: Change) -> bool:
    """Whether a body contains what the change shows, line by line, escaped or not; dates have other forms."""
    content = plain(request.body.content.decode("utf-8", "replace")) if request.body else ""
    shown = [plain(text_of(value)) for name, value in mapping(change.after).items() if name != "pubDate"]
    lines = [line for text in shown for line in text.split("\n")]
    return change.action in {"add", "change"} and all(line in content or escape(line) in content for line in lines)
