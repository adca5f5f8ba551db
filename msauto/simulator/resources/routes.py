"""The endpoints of the interface, by path and method."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass, field

from msauto.simulator.commands import COMMANDS, CommandCall, delete_asset, load_batch
from msauto.simulator.dialect import SimDialect
from msauto.simulator.http import answers, wire
from msauto.simulator.resources.asset_xml import clip_xml, xmp_answer
from msauto.simulator.resources.listings import databases_answer, folder_answer
from msauto.simulator.resources.media import Media, thumbnail_answer
from msauto.simulator.resources.rss import channel_xml, channels_answer, delete_item, find_channel, put_item
from msauto.simulator.state.state import ServerState, SimDatabase, SimEntry

Reply = answers.HttpAnswer | Awaitable[answers.HttpAnswer]


@dataclass(slots=True)
class Routes:
    """The endpoints. `writes` counts the requests that can have changed the state."""

    state: ServerState
    dialect: SimDialect
    restore_seconds: float = 0.0
    proxy_seconds: float = 0.0
    media: Media = field(default_factory=Media)
    writes: int = 0

    def answer(self, request: wire.HttpRequest) -> Reply:
        """Do what the request asks for; an awaitable for thumbnails and proxies."""
        limit = int(self.dialect.line_limit)
        if limit and len(request.target) > limit:
            return answers.text_answer("Error: the request line is too long", 414, done=False)
        try:
            request.params = wire.decode_query(request.raw_query, self.dialect.plus == "space")
            return self._dispatch(request)
        except wire.ResourceNotFoundError:
            return answers.not_found_answer(self.dialect)
        except wire.RefusalError as refusal:
            return answers.refusal_answer(refusal, self.dialect)
        except wire.MalformedRequestError as problem:
            return answers.text_answer(f"Error: {problem}", 400, done=False)

    def pretend(self, request: wire.HttpRequest) -> Reply:
        """Return the answer of a successful request; a write is not done."""
        if request.method in ("GET", "HEAD"):
            return self.answer(request)
        return answers.success_answer(self.dialect, None, len(request.target))

    def _dispatch(self, request: wire.HttpRequest) -> Reply:
        top, *segments = request.raw_path.removeprefix("/").split("/")
        if segments and segments[-1] == "":
            segments.pop()
        if top == "storage":
            return self._storage(request, segments)
        if top == "rss":
            return self._rss(request, segments)
        raise wire.ResourceNotFoundError

    def _storage(self, request: wire.HttpRequest, segments: list[str]) -> Reply:
        if not segments:
            _only_read(request)
            return databases_answer(self.state, self.dialect)
        dialect = self.dialect
        address = wire.decode_address(segments, dialect.ns_id == "yes", dialect.title_address == "ns")
        database = self.state.databases.get(address.database)
        if database is None:
            raise wire.ResourceNotFoundError
        if address.asset is not None:
            return self._asset(request, database, address)
        if request.method == "PUT" and not address.folder:
            load_batch(database, request.required("connector"), request.body)
            return self._success(request)
        _only_read(request)
        return folder_answer(database, address.folder, request, dialect)

    def _asset(self, request: wire.HttpRequest, database: SimDatabase, address: wire.RequestAddress) -> Reply:
        entries = self.state.find(database, address.namespace, address.asset or "", self.dialect)
        entry = entries[0]
        if address.tail:
            _only_read(request)
            return self._asset_part(request, database, entry, address.tail)
        if request.method == "POST":
            return self._command(request, database, entry)
        if request.method == "DELETE":
            delete_asset(database, entry, self.dialect)
            return self._success(request)
        _only_read(request)
        twins = [each for each in entries if each.is_home] if self.dialect.title_twins == "both" else []
        if len(twins) > 1:
            clips = "".join(clip_xml(each, self.dialect) for each in twins)
            return answers.xml_answer(f"<Clips>{clips}</Clips>", self.dialect)
        return answers.xml_answer(clip_xml(entry, self.dialect), self.dialect)

    def _asset_part(
        self, request: wire.HttpRequest, database: SimDatabase, entry: SimEntry, tail: tuple[str, ...]
    ) -> Reply:
        match tail:
            case ("GETUSERFIELDS",):
                return xmp_answer(entry.clip, request.all_params("field"), self.dialect)
            case ("GETICON",):
                return thumbnail_answer(request, entry, self.dialect)
            case ("PVW", profile) | (profile,):
                seconds, view = self.proxy_seconds, len(tail) > 1
                return self.media.answer(request, database, entry, profile, seconds, self.dialect, view=view)
            case _:
                raise wire.ResourceNotFoundError

    def _command(self, request: wire.HttpRequest, database: SimDatabase, entry: SimEntry) -> answers.HttpAnswer:
        name = request.param("command") or ""
        if name not in COMMANDS:
            raise wire.RefusalError(400, f"unknown command {name}")
        COMMANDS[name](CommandCall(self.state, database, entry, request, self.dialect, self.restore_seconds))
        return self._success(request, entry)

    def _rss(self, request: wire.HttpRequest, segments: list[str]) -> answers.HttpAnswer:
        match (request.method, [wire.decode_percent(segment) for segment in segments]):
            case ("GET" | "HEAD", []):
                return channels_answer(self.state, self.dialect)
            case ("GET" | "HEAD", [name]):
                return answers.xml_answer(channel_xml(find_channel(self.state, name), self.dialect), self.dialect)
            case ("PUT", [name, file]):
                put_item(find_channel(self.state, name), file, request.body, self.dialect)
                return self._success(request)
            case ("DELETE", [name]):
                delete_item(find_channel(self.state, name), request.required("guid"), self.dialect)
                return self._success(request)
            case (_, [] | [_] | [_, _]):
                raise wire.RefusalError(405, f"{request.method} is not supported here")
            case _:
                raise wire.ResourceNotFoundError

    def _success(self, request: wire.HttpRequest, entry: SimEntry | None = None) -> answers.HttpAnswer:
        self.writes += 1
        shown = clip_xml(entry, self.dialect) if entry and self.dialect.command_body == "clip" else None
        return answers.success_answer(self.dialect, shown, len(request.target))


def _only_read(request: wire.HttpRequest) -> None:
    if request.method not in ("GET", "HEAD"):
        raise wire.RefusalError(405, f"{request.method} is not supported here")
