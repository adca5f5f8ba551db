"""What is measured: each side of a comparison is a function, run in a process of its own.

`python -m bench.sides NAME SIZE SOURCE` prints the CPU seconds, the wall seconds, the peak memory (MiB), and the
number of requests that the side sent, as JSON. SOURCE is the URL of a media server, or the path of a file.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

CONNECTIONS = 16
"""The connections of a server by default, and the targets at a time."""
PIECE = 2**16

SELECT = """
- hosts: all
  database: NEWS
  tasks:
    - asset:
        select: {folder: Bulk, recursive: true}
        fields: {comment: Checked}
        markers: [{at: 100, track: Cue Point, title: Ad break}]
"""
SELECT_FEW = """
- hosts: all
  database: NEWS
  tasks:
    - asset:
        select: {folder: Bulk, recursive: true, where: 'asset.title is match("Bulk 0000")'}
        fields: {comment: Checked}
"""
NAMED = """    - asset:
        title: "Bulk {number:06}"
        fields: {{comment: "Checked {number}"}}
        markers:
          - {{at: 100, track: Cue Point, title: Ad break}}
          - {{at: 00:00:06:00, track: Cue Point, title: Second break}}
        segments: [{{number: 1, start: 0, duration: 50, title: Opening}}]
"""


LOOP = """
- hosts: all
  database: NEWS
  tasks:
    - asset:
        title: "{{ item.title }}"
        fields: {comment: "{{ item.comment }}"}
        markers:
          - {at: "{{ item.break }}", track: Cue Point, title: Ad break}
          - {at: 00:00:06:00, track: Cue Point, title: Second break}
        segments: [{number: 1, start: 0, duration: 50, title: Opening}]
      loop: "{{ lookup('csv', 'table.csv') }}"
"""


MARKER = "          - {{at: {at}, track: Cue Point, title: '{title}'}}\n"
"""A marker of the clip that has as many as a side's size."""


def marked(count: int, changed: str) -> str:
    """Return a playbook that names all markers of a clip; ``changed``: the title of every other one."""
    head = "- hosts: all\n  database: NEWS\n  tasks:\n    - asset:\n        title: Long Film\n        markers:\n"
    titles = (f"{changed if number % 2 else 'Cue'} {number}" for number in range(count))
    markers = [MARKER.format(at=2 * number, title=title) for number, title in enumerate(titles)]
    return head + "".join(markers)


def named(count: int) -> Iterator[str]:
    """Yield a playbook that names assets, in pieces: a field, two markers and a segment each."""
    yield "- hosts: all\n  database: NEWS\n  tasks:\n"
    yield from (NAMED.format(number=number) for number in range(count))


def table(count: int) -> Iterator[str]:
    """Yield the table of ``LOOP``, for the same assets and changes as ``named``."""
    yield "title,comment,break\n"
    yield from (f"Bulk {number:06},Checked {number},100\n" for number in range(count))


def bare(url: str, size: int, *, write: bool) -> int:
    """Do the least by hand, with aiohttp and lxml: read and parse each asset; ``write``: write twice, read again."""
    import aiohttp
    from lxml import etree
    from yarl import URL

    sent = 0

    async def one(session: aiohttp.ClientSession, number: int) -> None:
        nonlocal sent
        address = f"{url}/storage/NEWS@Bulk%20{number:06}"
        calls = [("GET", "")]
        if write:
            marker = "?command=CREATEMARKER&uid=-1&frame=100&track=Cue%20Point&title=Ad%20break"
            calls += [
                ("POST", "?command=SETFIELD&name=comment&val=Checked"),
                ("POST", marker),
                ("GET", ""),
            ]
        for method, query in calls:
            async with session.request(method, URL(address + query, encoded=True)) as answer:
                assert answer.status == 200, answer.status
                body = await answer.read()
            if method == "GET":
                etree.fromstring(body)
            sent += 1

    async def main() -> None:
        limit = asyncio.Semaphore(CONNECTIONS)
        async with aiohttp.ClientSession() as session:

            async def bounded(number: int) -> None:
                async with limit:
                    await one(session, number)

            await asyncio.gather(*(bounded(number) for number in range(size)))

    asyncio.run(main())
    return sent


def script(url: str, size: int) -> int:
    """Read and parse each asset in sequence, as a script with requests would."""
    import requests
    from lxml import etree

    with requests.Session() as session:
        for number in range(size):
            etree.fromstring(
                session.get(f"{url}/storage/NEWS@Bulk%20{number:06}", timeout=60).content
            )
    return size


def change(url: str, size: int) -> int:
    """Change one field of each hundredth asset, as a colleague does by hand."""
    import requests

    with requests.Session() as session:
        for number in range(0, size, 100):
            path = (
                f"{url}/storage/NEWS@Bulk%20{number:06}?command=SETFIELD&name=comment&val=By%20hand"
            )
            session.post(path, timeout=60).raise_for_status()
    return size


def msauto(*args: str) -> None:
    """Run a command of msauto in this process, without its output."""
    from msauto.cli.main import main

    err = StringIO()
    with Path(os.devnull).open("w") as out, redirect_stdout(out), redirect_stderr(err):
        code = main(list(args))
    assert code in (0, 2), (code, err.getvalue()[-1000:])


def planned(url: str, playbook: Iterable[str], expected: int, rows: Iterable[str] = ()) -> int:
    """Plan a playbook, with the rows of its table; return the number of reads that the plan took."""
    with tempfile.TemporaryDirectory() as folder:
        book, out = Path(folder) / "play.yml", Path(folder) / "plan.json"
        with (Path(folder) / "table.csv").open("w") as file:
            file.writelines(rows)
        with book.open("w") as file:
            file.writelines(playbook)
        flags = ["--server", url, "--state-dir", f"{folder}/state"]
        msauto("plan", str(book), *flags, "--out", str(out))
        with out.open() as file:
            start = file.read(PIECE)  # the targets would count as memory of the plan
        summary, _ = json.JSONDecoder().raw_decode(start.partition('"summary": ')[2])
    assert summary["assets"] == expected, summary
    return int(summary["reads"])


def applied(url: str, playbook: str) -> int:
    """Apply a playbook, with its plan, the ledger and verification."""
    with tempfile.TemporaryDirectory() as folder:
        book = Path(folder) / "play.yml"
        book.write_text(playbook)
        msauto("apply", str(book), "--server", url, "--yes", "--state-dir", f"{folder}/state")
    return 0


def undone(url: str, size: int) -> int:
    """Undo a run over so many assets, which another process has applied."""
    with tempfile.TemporaryDirectory() as folder:
        book = Path(folder) / "play.yml"
        book.write_text(SELECT)
        flags = ("--server", url, "--yes", "--state-dir", f"{folder}/state")
        command = [sys.executable, "-m", "msauto", "apply", str(book), *flags]
        subprocess.run(command, check=True, capture_output=True)
        msauto("undo", "last", *flags, "--allow-remove", str(size))
    return size


def loaded(path: str, size: int) -> int:
    """Load and validate a playbook, without a server."""
    msauto("validate", path)
    return size


def yaml_events(path: str, size: int) -> int:
    """Read the events of libyaml, with their places: the least that a loader with places needs."""
    import yaml

    with Path(path).open("rb") as file:
        for event in yaml.parse(file, yaml.CSafeLoader):
            event.start_mark  # noqa: B018 - a place for each value is what errors need
    return size


def listing_pulled(path: str, size: int) -> int:
    """Pull one clip at a time from a listing with lxml and clear it, without reading values."""
    from lxml import etree

    parser: Any = etree.XMLPullParser(events=("end",), tag="Clip")
    count = 0
    with Path(path).open("rb") as file:
        while piece := file.read(PIECE):
            parser.feed(piece)
            for _, clip in parser.read_events():
                count += 1
                clip.clear()
                while clip.getprevious() is not None:
                    del clip.getparent()[0]
    parser.close()
    assert count == size
    return count


def listing_read(path: str, size: int) -> int:
    """Read a listing as msauto does."""
    from msauto.server.listing import ListingReading

    reading = ListingReading("NEWS", ())
    with Path(path).open("rb") as file:
        while piece := file.read(PIECE):
            reading.feed(piece)
    assert len(reading.close().entries) == size
    return size


SIDES: dict[str, Callable[[str, int], int]] = {
    "nothing": lambda _, size: size,
    "bare read": lambda url, size: bare(url, size, write=False),
    "bare write": lambda url, size: bare(url, size, write=True),
    "requests": script,
    "change": change,
    "plan select": lambda url, size: planned(url, SELECT, size),
    "plan changed": lambda url, size: planned(url, SELECT, size // 100),
    "plan few": lambda url, _: planned(url, SELECT_FEW, 100),
    "plan loop": lambda url, size: planned(url, LOOP, size, table(size)),
    "apply select": lambda url, _: applied(url, SELECT),
    "apply markers": lambda url, size: applied(url, marked(size, "Cue")),
    "change markers": lambda url, size: applied(url, marked(size, "Changed")),
    "undo select": undone,
    "load": loaded,
    "yaml events": yaml_events,
    "listing pulled": listing_pulled,
    "listing": listing_read,
}


def main() -> None:
    name, size, source = sys.argv[1:]
    started, cpu = time.perf_counter(), time.process_time()
    count = SIDES[name](source, int(size))
    found = {
        "cpu": time.process_time() - cpu,
        "seconds": time.perf_counter() - started,
        "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "count": count,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
