"""Measure how msauto reads a listing of 100,000 clips, compared with plain lxml on the same bytes; then plan over it.

Each side runs in its own process. The output has CPU seconds, peak memory (MiB, minus what the process had before) and
the ratio msauto : lxml. There are two lxml sides:

- whole: builds the tree of the complete answer, like ``etree.fromstring``
- pulled: pulls one clip at a time and clears it, without reading values

The plan selects 100 clips by title. Its server is the embedded one, whose clips have more attributes.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from bench.whole_way import media_server

CLIPS = 100_000
PIECE = 2**16
PLAYBOOK = """
- hosts: all
  database: NEWS
  tasks:
    - name: A few of all
      asset:
        select: {folder: Bulk, recursive: true, where: 'asset.title is match("Bulk 0000")'}
        fields: {comment: Checked}
"""
CLIP = """<Clip link_id="{n}" finalized="true">
<Attr name="bps">16</Attr><Attr name="channels">2</Attr><Attr name="derived_from"></Attr>
<Attr name="frame_time">0.0400000000</Attr><Attr name="frames">{frames}</Attr>
<Attr name="height">1080</Attr><Attr name="width">1920</Attr><Attr name="sample_rate">48000</Attr>
<Attr name="orig_name">N{n:07}.mxf</Attr><Attr name="orig_type">MXF</Attr>
<Attr name="first_frame">0</Attr><Attr name="last_frame">{frames}</Attr>
<Attr name="title">Новости дня, выпуск {n}</Attr>
<Attr name="create_time">2026-11-{day:02}T10:00:00</Attr><Attr name="rec_time">2026-11-{day:02}T09:00:00</Attr>
</Clip>
"""


def listing(count: int) -> Iterator[str]:
    """Yield a StoredTree with all documented attributes (interface: StoredTree), with 1000 clips in each folder."""
    yield '<?xml version="1.0" encoding="utf-8"?>\n<StoredTree query_root=""><Folder name="">\n'
    for number in range(count):
        if number % 1000 == 0:
            yield ("</Folder>\n" if number else "") + f'<Folder name="Архив {number // 1000}">\n'
        yield CLIP.format(n=number, frames=250 + number % 5000, day=1 + number % 28)
    yield "</Folder></Folder></StoredTree>"


def pieces(path: str) -> Iterator[bytes]:
    """Yield the file in chunks, as a connection delivers it."""
    with Path(path).open("rb") as file:
        while piece := file.read(PIECE):
            yield piece


def read_with_msauto(path: str) -> int:
    from msauto.server.parsers.listing import ListingReading

    reading = ListingReading("NEWS", ())
    for piece in pieces(path):
        reading.feed(piece)
    return len(reading.close().entries)


def read_whole(path: str) -> int:
    from lxml import etree

    return len(etree.fromstring(b"".join(pieces(path))).findall(".//Clip"))


def read_pulled(path: str) -> int:
    from lxml import etree

    parser: Any = etree.XMLPullParser(events=("end",), tag="Clip")
    count = 0
    for piece in pieces(path):
        parser.feed(piece)
        for _, clip in parser.read_events():
            count += 1
            clip.clear()
            parent = clip.getparent()
            while parent is not None and clip.getprevious() is not None:
                del parent[0]
    parser.close()
    return count


def plan(url: str) -> int:
    """Plan the playbook against the server at this URL with ``msauto plan``; return the number of clips."""
    from msauto.cli.main import main

    with tempfile.TemporaryDirectory() as folder, redirect_stdout(StringIO()):
        book, out = Path(folder) / "few.yml", Path(folder) / "plan.json"
        book.write_text(PLAYBOOK)
        assert main(["plan", str(book), "--server", url, "--out", str(out), "--state-dir", f"{folder}/state"]) == 0
        found = json.loads(out.read_text())
    assert found["summary"]["assets"] == 100, found["summary"]
    return CLIPS


SIDES: dict[str, Callable[[str], int]] = {
    "lxml, whole": read_whole,
    "lxml, pulled": read_pulled,
    "msauto": read_with_msauto,
    "plan": plan,
}


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def worker(side: str, source: str) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.large_house", side, source]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def measure(side: str, source: str) -> dict[str, float]:
    before, cpu = peak(), time.process_time()
    assert SIDES[side](source) == CLIPS
    return {"cpu": time.process_time() - cpu, "mib": peak() - before}


def report() -> None:
    with tempfile.NamedTemporaryFile(suffix=".xml") as file:
        file.writelines(part.encode() for part in listing(CLIPS))
        file.flush()
        size = Path(file.name).stat().st_size
        print(f"a listing of {CLIPS} clips, {size / 2**20:.0f} MiB")
        print(f"{'':16}{'CPU s':>10}{'MiB':>10}")
        figures = {side: worker(side, file.name) for side in ("lxml, whole", "lxml, pulled", "msauto")}
    with media_server(CLIPS) as url:
        figures["plan"] = worker("plan", url)
    for side, found in figures.items():
        print(f"{side:16}{found['cpu']:10.2f}{found['mib']:10.1f}")
    for side in ("lxml, whole", "lxml, pulled"):
        ratios = [figures["msauto"][key] / figures[side][key] for key in ("cpu", "mib")]
        print(f"{'msauto : ' + side:22}{ratios[0]:.2f} of the CPU, {ratios[1]:.2f} of the memory")


if __name__ == "__main__":
    if len(sys.argv) == 1:
        report()
    else:
        print(json.dumps(measure(sys.argv[1], sys.argv[2])))
