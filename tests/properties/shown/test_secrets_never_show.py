"""Whatever a server answers, and whatever fails: no secret of ours is in an error, its causes, an answer or a repr."""

from __future__ import annotations

import asyncio
import base64
import html
import traceback
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msauto.errors import MsautoError
from msauto.model.server import Auth, Secret, ServerSpec, Tls
from msauto.plugins.probe.probe import probe
from msauto.plugins.simulator.embedded import Simulator, state_from_seed
from msauto.server.access import spec_of
from msauto.server.client import AsyncMediaServer
from tests.examples import examples
from tests.tables import one_fast_in

SIGNS = st.one_of(
    st.characters(codec="utf-8", exclude_categories=["C", "Z"]),
    st.sampled_from("<>&\"'%+/\\=:@ {}$#?;,"),
)
TEXTS = st.text(SIGNS, max_size=20)
SECRETS = st.tuples(TEXTS, TEXTS).map("Q§7".join)  # never a part of what errors say anyway

WAYS = ("basic", "bearer", "header", "tls")


def spec_with(secret: str, way: str, url: str = "http://studio:7901") -> ServerSpec:
    return {
        "basic": ServerSpec("studio", url, auth=Auth(username="ops", password=Secret(secret))),
        "bearer": ServerSpec("studio", url, auth=Auth(bearer=Secret(secret))),
        "header": ServerSpec("studio", url, auth=Auth(headers=(("X-Key", Secret(secret)),))),
        "tls": ServerSpec("studio", url, tls=Tls(key_password=Secret(secret))),
    }[way]


def told(secret: str, request: httpx2.Request) -> str:
    """What a talkative server repeats: what it was sent, byte for byte, and what it made of it."""
    sent = b" ".join(value for _, value in request.headers.raw).decode("utf-8")
    coded = [html.escape(secret), quote(secret), quote(secret, safe=""), repr(secret)]
    return " ".join(["you sent", sent, "that is", secret, *coded])


ANSWERS: dict[str, Callable[[str], httpx2.Response]] = {
    "text": lambda text: httpx2.Response(401, text=text),
    "not found": lambda text: httpx2.Response(404, text=f"Object not found {text}"),
    "busy": lambda text: httpx2.Response(500, text=f"{'x' * 270} {text}"),
    "good status": lambda text: httpx2.Response(200, text=f"Error: {text}"),
    "document": lambda text: httpx2.Response(
        200, text=f"<error code='1'>{html.escape(text)}</error>"
    ),
    "attribute": lambda text: httpx2.Response(400, text=f'<error told="{html.escape(text)}"/>'),
    "page": lambda text: httpx2.Response(
        200, html=f"<html><title>{html.escape(text)}</title><form></form></html>"
    ),
    "elsewhere": lambda text: httpx2.Response(
        302, headers={"Location": f"http://x/?{quote(text)}"}
    ),
    "raw elsewhere": lambda text: httpx2.Response(302, headers=[(b"Location", text.encode())]),
    "json": lambda text: httpx2.Response(200, json={"error": text}),
    "clip": lambda text: httpx2.Response(
        200, text=f"<Clip><Marker uid='{html.escape(text)}'/></Clip>"
    ),
    "root": lambda text: httpx2.Response(
        200, text=f"<{''.join(filter(str.isalnum, text)) or 'x'}/>"
    ),
    "media type": lambda text: httpx2.Response(
        200, headers=[(b"Content-Type", text.encode())], content=b"\x00"
    ),
}


def dropped(text: str) -> httpx2.Response:
    raise httpx2.ReadError(text)


CALLS: dict[str, Callable[[AsyncMediaServer, Path], Coroutine[Any, Any, Any]]] = {
    "asset": lambda server, _: server.asset("NEWS", "x"),
    "list": lambda server, _: server.list("NEWS"),
    "xmp": lambda server, _: server.xmp("NEWS", "x"),
    "channel": lambda server, _: server.channel("x"),
    "thumbnail": lambda server, _: server.thumbnail("NEWS", "x"),
    "proxy": lambda server, folder: server.download_proxy("NEWS", "x", "WP1", folder / "x.mp4"),
    "write": lambda server, _: server.set_field("NEWS", "x", "comment", "y"),
}


class NoWait:
    """A stopped clock."""

    def now(self) -> Any:
        from datetime import UTC, datetime

        return datetime(2026, 11, 20, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


def shown(
    spec: ServerSpec, secret: str, answer: Callable[[str], httpx2.Response], call: str, folder: Path
) -> str:
    """All that can be seen of one call: its error with causes and trace, or its result."""

    async def reply(request: httpx2.Request) -> httpx2.Response:
        return answer(told(secret, request))

    async def main() -> str:
        transport = httpx2.MockTransport(reply)
        async with AsyncMediaServer(spec, transport=transport, clock=NoWait()) as server:
            try:
                result = await CALLS[call](server, folder)
            except MsautoError as error:
                parts = [
                    str(error),
                    repr(error),
                    error.message,
                    error.remedy,
                    *map(str, error.args),
                ]
                return " ".join([*parts, *traceback.format_exception(error), repr(server.spec)])
            return str(result) if call == "write" else ""

    return asyncio.run(main())


def leaks(secret: str, text: str) -> list[str]:
    pair = base64.b64encode(f"ops:{secret}".encode()).decode()
    forms = {
        secret,
        repr(secret)[1:-1],
        html.escape(secret),
        quote(secret),
        quote(secret, safe=""),
        pair,
    }
    return [form for form in forms if form in text]


@settings(max_examples=examples(25))
@given(SECRETS, st.sampled_from(WAYS))
@pytest.mark.parametrize("answer", one_fast_in(3, [*ANSWERS, "dropped"]))
def test_no_answer_makes_a_secret_show(
    tmp_path_factory: pytest.TempPathFactory, answer: str, secret: str, way: str
) -> None:
    folder = tmp_path_factory.getbasetemp()
    for call in CALLS:
        text = shown(spec_with(secret, way), secret, ANSWERS.get(answer, dropped), call, folder)
        assert leaks(secret, text) == []


@given(SECRETS)
def test_no_url_makes_a_password_show(secret: str) -> None:
    for url in (
        f"http://ops:{secret}@studio",
        f"ops:{secret}@studio/path",
        f"ftp://ops:{secret}@studio:1",
    ):
        try:
            spec = spec_of(url)
        except MsautoError as error:
            text = " ".join([str(error), repr(error), *traceback.format_exception(error)])
        else:
            text = repr(spec)
        assert secret not in text or secret in "studio"


@pytest.mark.parametrize("way", WAYS)
def test_no_failure_on_the_way_makes_a_secret_show(way: str, tmp_path: Path) -> None:
    secret = "geheim\u00fc <&\"'%41 wort"
    (tmp_path / "bad.pem").write_text(secret)
    bad = Tls(cert=str(tmp_path / "bad.pem"), key_password=Secret(secret))
    specs = [
        spec_with(secret, way, url)
        for url in ("http://127.0.0.1:9", "https://127.0.0.1:9", "http://no.invalid:1")
    ]
    specs.append(
        ServerSpec("studio", "https://127.0.0.1:9", auth=Auth(bearer=Secret(secret)), tls=bad)
    )
    specs += [
        ServerSpec("studio", "http://h", auth=Auth(bearer=Secret(secret + end)))
        for end in ("\n", "\x00")
    ]
    specs.append(ServerSpec("studio", f"http://ops:{quote(secret)}@127.0.0.1:9"))

    async def ask(spec: ServerSpec) -> None:
        async with AsyncMediaServer(spec, clock=NoWait()) as server:
            await server.set_field("NEWS", "x", "comment", "y")

    for spec in specs:
        with pytest.raises(MsautoError) as caught:
            asyncio.run(ask(spec))
        text = " ".join([str(caught.value), *traceback.format_exception(caught.value)])
        assert leaks(secret, text) == []


def test_probe_shows_no_secret_that_a_server_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    from msauto.plugins.simulator.embedded import server, wire

    secret = "geheim-und-lang"

    def talkative(dialect: Any) -> wire.HttpAnswer:
        return wire.text_answer(f"Object not found; you are {secret}", 404, done=False)

    monkeypatch.setattr(server, "not_found_answer", talkative)
    with Simulator(state_from_seed("sample")) as sim:
        findings = asyncio.run(probe(spec_with(secret, "bearer", sim.url), "NEWS"))
    assert "you are ***" in str(findings)
    assert secret not in str(findings)
