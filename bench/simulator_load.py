"""Measure how many requests a second the simulator answers: `python bench/simulator_load.py [CLIPS] [REQUESTS]`.

The server runs in its own process; the client writes raw bytes over kept-alive connections. The output has the rate
that the client sees, and the rate for each second of the server's CPU time. The second rate does not depend on other
processes on the machine.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection

from msauto.plugins.simulator.embedded import Simulator, bulk_state

CONNECTIONS = 16
GOAL = 2000


def run_server(pipe: Connection, clips: int) -> None:
    """Send the port, then the CPU time for each message received, until the message is `stop`."""
    with Simulator(state=bulk_state(clips)) as sim:
        pipe.send(sim.port)
        while pipe.recv() != "stop":
            pipe.send(time.process_time())


async def ask(port: int, lines: Iterator[bytes]) -> int:
    """Send the requests in sequence on one connection; return how many were answered with 200."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**30)
    answered = 0
    for line in lines:
        writer.write(line + b" HTTP/1.1\r\nHost: x\r\n\r\n")
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        assert head.startswith(b"http/1.1 200"), head
        if b"transfer-encoding: chunked" in head:
            await reader.readuntil(b"\r\n0\r\n\r\n")
        else:
            await reader.readexactly(int(head.partition(b"content-length: ")[2].split(b"\r\n")[0]))
        answered += 1
    writer.close()
    return answered


async def load(port: int, count: int, line: Callable[[int], bytes]) -> float:
    """Send `count` requests over all connections; return the seconds it took."""
    lines = (line(number) for number in range(count))
    started = time.perf_counter()
    answered = await asyncio.gather(*(ask(port, lines) for _ in range(CONNECTIONS)))
    assert sum(answered) == count
    return time.perf_counter() - started


def main() -> None:
    given = [int(text) for text in sys.argv[1:]]
    clips, count = (*given, *(1000, 10000)[len(given) :])
    here, there = multiprocessing.Pipe()
    server = multiprocessing.Process(target=run_server, args=(there, clips), daemon=True)
    server.start()
    port = here.recv()
    cases: dict[str, tuple[int, Callable[[int], bytes]]] = {
        "GET of a clip": (count, lambda n: b"GET /storage/NEWS@Bulk%%20%06d" % (n % clips)),
        "CREATEMARKER": (
            count,
            lambda n: (
                b"POST /storage/NEWS@Bulk%%20%06d?command=CREATEMARKER&uid=-1&frame=%d&title=x"
                % (n % clips, n % 250)
            ),
        ),
        "SETFIELD": (
            count,
            lambda n: (
                b"POST /storage/NEWS@Bulk%%20%06d?command=SETFIELD&name=comment&val=%d"
                % (n % clips, n)
            ),
        ),
        "listing of all": (1, lambda _: b"GET /storage/NEWS"),
    }
    for name, (number, line) in cases.items():
        here.send("cpu")
        before = here.recv()
        seconds = asyncio.run(load(port, number, line))
        here.send("cpu")
        cpu = here.recv() - before
        goal = f" (goal {GOAL})" if number > 1 else f", {clips / cpu:,.0f} clips a second of CPU"
        print(
            f"{name:15} {number / seconds:9,.1f} a second seen, {number / cpu:9,.1f} a second of CPU{goal}"
        )
    here.send("stop")
    server.join()


if __name__ == "__main__":
    main()
