"""The endpoints of the interface, by path and method."""

from __future__ import annotations

import base64
import hmac

from msauto.simulator import answers, wire
from msauto.simulator.commands import COMMANDS, CommandCall, delete_asset, load_batch
from msauto.simulator.dialect import SimDialect
from msauto.simulator.media import proxy_answer, thumbnail_answer
from msauto.simulator.rss import channel_xml, channels_xml, delete_item, find_channel, put_item
from msauto.simulator.state import ServerState, SimDatabase, SimEntry
from msauto.simulator.storage_xml import clip_xml, databases_parts, folder_parts, xmp_answer


class SimServer:
    """A media server without a network. Its state and its dialect can be changed and replaced at any time."""

    def __init__(self, state: ServerState, dialect: SimDialect, restore_seconds: float) -> None:
        self.state = state
        self.dialect = dialect
        self._restore_seconds = restore_seconds

    def answer(self, request: wire.HttpRequest, *, pretend: bool = False) -> answers.HttpAnswer:
        """Do what the request asks for. `pretend`: a write is not done, but answered as after success."""
        limit = int(self.dialect.line_limit)
        try:
            if (refused := self._unauthorized(request)) is not None:
                return refused
            if pretend and request.method not in wire.READS:
                return answers.success_answer(self.dialect, None)
            if limit and len(request.target) > limit:
                return answers.text_answer("Error: the request line is too long", 414, done=False)
            path, _, query = request.target.partition("?")
            request.params = wire.decode_query(query, self.dialect.plus == "space")
            return self._dispatch(request, path)
        except wire.ResourceNotFoundError:
            return answers.not_found_answer(self.dialect)
        except wire.RefusalError as refusal:
            return answers.refusal_answer(refusal, self.dialect)
        except wire.MalformedRequestError as problem:
            return answers.text_answer(f"Error: {problem}", 400, done=False)

    def _unauthorized(self, request: wire.HttpRequest) -> answers.HttpAnswer | None:
        """Return a 401 for a request without the right credentials (interface "Authentication": not shown)."""
        dialect = self.dialect
        if dialect.auth == "none":
            return None
        pair = base64.b64encode(f"{dialect.auth_user}:{dialect.auth_password}".encode()).decode()
        header, desired, challenge = {
            "basic": ("Authorization", f"Basic {pair}", 'Basic realm="media"'),
            "bearer": ("Authorization", f"Bearer {dialect.auth_token}", "Bearer"),
            "header": (dialect.auth_header, dialect.auth_token, ""),
        }[dialect.auth]
        given = request.headers.get(header, "").encode("utf-8", "surrogateescape")
        if hmac.compare_digest(given, desired.encode()):
            return None
        answer = answers.text_answer("Error: authentication required", 401, done=False)
        if challenge:
            answer.headers["WWW-Authenticate"] = challenge
        return answer

    def _dispatch(self, request: wire.HttpRequest, path: str) -> answers.HttpAnswer:
        top, *segments = path.removeprefix("/").split("/")
        if segments and segments[-1] == "":
            segments.pop()
        if top == "storage":
            return self._storage(request, segments)
        if top == "rss":
            return self._rss(request, segments)
        raise wire.ResourceNotFoundError

    def _storage(self, request: wire.HttpRequest, segments: list[str]) -> answers.HttpAnswer:
        if not segments:
            _only_read(request)
            return answers.xml_answer(databases_parts(self.state, self.dialect), self.dialect)
        dialect = self.dialect
        address = wire.decode_address(segments, dialect.ns_id == "yes", dialect.title_address == "ns")
        database = self.state.databases.get(address.database)
        if database is None:
            raise wire.ResourceNotFoundError
        if address.asset is not None:
            return self._asset(request, database, address)
        if request.method == "PUT" and not address.folder:
            load_batch(database, request.required("connector"), request.body)
            return self._success()
        _only_read(request)
        return answers.xml_answer(folder_parts(database, address.folder, request, dialect), dialect)

    def _asset(
        self, request: wire.HttpRequest, database: SimDatabase, address: wire.RequestAddress
    ) -> answers.HttpAnswer:
        entries = self.state.find(database, address.namespace, address.asset or "", self.dialect)
        entry = entries[0]
        match request.method, *address.tail:
            case ("POST",):
                return self._command(request, database, entry)
            case ("DELETE",):
                delete_asset(database, entry, self.dialect)
                return self._success()
            case _:
                _only_read(request)
        match address.tail:
            case ("GETUSERFIELDS",):
                return xmp_answer(entry.clip, request.all_params("field"), self.dialect)
            case ("GETICON",):
                return thumbnail_answer(request, entry)
            case ("PVW", profile) | (profile,):
                return proxy_answer(request, database, entry, profile)
            case (_, *_):
                raise wire.ResourceNotFoundError
        twins = [each for each in entries if each.is_home] if self.dialect.title_twins == "both" else []
        if len(twins) > 1:
            clips = "".join(clip_xml(each, self.dialect) for each in twins)
            return answers.xml_answer(f"<Clips>{clips}</Clips>", self.dialect)
        return answers.xml_answer(clip_xml(entry, self.dialect), self.dialect)

    def _command(self, request: wire.HttpRequest, database: SimDatabase, entry: SimEntry) -> answers.HttpAnswer:
        name = request.param("command") or ""
        if name not in COMMANDS:
            raise wire.RefusalError(400, f"unknown command {name}")
        COMMANDS[name](CommandCall(self.state, database, entry, request, self.dialect, self._restore_seconds))
        return self._success(entry)

    def _rss(self, request: wire.HttpRequest, segments: list[str]) -> answers.HttpAnswer:
        match (request.method, [wire.decode_percent(segment) for segment in segments]):
            case ("GET" | "HEAD", []):
                return answers.xml_answer(channels_xml(self.state), self.dialect)
            case ("GET" | "HEAD", [name]):
                return answers.xml_answer(channel_xml(find_channel(self.state, name), self.dialect), self.dialect)
            case ("PUT", [name, file]):
                put_item(find_channel(self.state, name), file, request.body, self.dialect)
                return self._success()
            case ("DELETE", [name]):
                delete_item(find_channel(self.state, name), request.required("guid"), self.dialect)
                return self._success()
            case (_, [] | [_] | [_, _]):
                raise wire.RefusalError(405, f"{request.method} is not supported here")
            case _:
                raise wire.ResourceNotFoundError

    def _success(self, entry: SimEntry | None = None) -> answers.HttpAnswer:
        shown = clip_xml(entry, self.dialect) if entry and self.dialect.command_body == "clip" else None
        return answers.success_answer(self.dialect, shown)


def _only_read(request: wire.HttpRequest) -> None:
    if request.method not in wire.READS:
        raise wire.RefusalError(405, f"{request.method} is not supported here")
