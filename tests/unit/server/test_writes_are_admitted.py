"""A write is admitted at the last moment before it is sent: a ledger may be lost while it waits for a connection."""

import asyncio

import httpx2
import pytest

from msauto.errors import LedgerError
from msauto.model.plan import Request
from msauto.server.client import AsyncMediaServer


def test_a_write_that_is_not_admitted_is_not_sent() -> None:
    asked: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.method)
        return httpx2.Response(200, text="ok")

    lost = False

    def admit() -> None:
        if lost:
            raise LedgerError("the session is lost")

    async def write() -> None:
        nonlocal lost
        async with AsyncMediaServer("http://x", transport=httpx2.MockTransport(answer), admit=admit) as server:
            await server.send(Request("POST", "/storage/NEWS@Film?command=COPY"))
            lost = True
            await server.send(Request("GET", "/storage/NEWS@Film"))
            for _ in range(40):  # more than there are connections
                with pytest.raises(LedgerError, match="the session is lost"):
                    await server.send(Request("POST", "/storage/NEWS@Film?command=COPY"))
            lost = False
            await server.send(Request("POST", "/storage/NEWS@Film?command=COPY"))

    asyncio.run(write())
    assert asked == ["POST", "GET", "POST"]
