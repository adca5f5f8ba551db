"""What a GET costs below the client: ``python -m bench.transports 2000``.

The same GETs of one asset, one after the other, by aiohttp and by ``httpx2.AsyncHTTPTransport``. Nothing is parsed.
The CPU is that of this process, the lowest of three rounds.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable

import aiohttp
import httpx2
from yarl import URL

from bench.cases import media_server

ROUNDS = 3


async def by_aiohttp(url: str, count: int) -> None:
    """Send the GETs by aiohttp."""
    target = URL(url, encoded=True)
    async with aiohttp.ClientSession() as session:
        for _ in range(count):
            async with session.get(target) as answer:
                await answer.read()


async def by_httpx2(url: str, count: int) -> None:
    """Send the GETs by the transport of httpx2."""
    async with httpx2.AsyncHTTPTransport() as transport:
        for _ in range(count):
            answer = await transport.handle_async_request(httpx2.Request("GET", url))
            await answer.aread()
            await answer.aclose()


def microseconds(send: Callable[[str, int], Awaitable[None]], url: str, count: int) -> float:
    """Return the CPU time of one GET."""

    async def run() -> float:
        await send(url, 100)
        before = time.process_time()
        await send(url, count)
        return time.process_time() - before

    return min(asyncio.run(run()) for _ in range(ROUNDS)) / count * 1e6


def main(count: int) -> None:
    """Print the CPU time of a GET by each transport."""
    with media_server(10) as server:
        url = f"{server}/storage/NEWS@Bulk%20000001"
        print(
            f"aiohttp                    {microseconds(by_aiohttp, url, count):5.0f} µs of CPU for each GET"
        )
        print(
            f"httpx2.AsyncHTTPTransport  {microseconds(by_httpx2, url, count):5.0f} µs of CPU for each GET"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
