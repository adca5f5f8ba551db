"""The readers of what others write, each with files of the tests, and the errors by which it refuses."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Final, NamedTuple

from msauto.api.saved_plans import read_plan_file
from msauto.codec import parse_json
from msauto.documents.loader import load_yaml
from msauto.documents.text_files import TextFileError, decode
from msauto.errors import InputError, MsautoError
from msauto.playbook.hosts import ResolveOptions
from msauto.playbook.settings import load_settings
from msauto.playbook.validate import validate
from msauto.plugins.simulator.content import load_content
from msauto.plugins.timelines.formats import read_timeline
from msauto.plugins.timelines.timeline import TimelineClock
from msauto.server.error_answers import parse_failure
from msauto.server.listing import ListingReading, parse_databases, parse_mam
from msauto.server.parsers import parse_channel, parse_channels, parse_clip, parse_xmp

ROOT: Final = Path(__file__).parents[2]
XML: Final = ROOT / "tests/cases/xml"
GOLDEN: Final = ROOT / "tests/cli/golden"
TIMELINES: Final = ROOT / "tests/cases/timelines"
CLOCK: Final = TimelineClock(Fraction(25))


class Reader(NamedTuple):
    """A reader, the files that mutations begin with, and the errors by which it refuses what it cannot read."""

    read: Callable[[bytes], object]
    files: Iterable[Path]
    errors: tuple[type[Exception], ...] = (MsautoError,)


def read_listing(data: bytes) -> object:
    """Read a listing in two pieces, as it arrives."""
    reading = ListingReading("NEWS", ())
    half = len(data) // 2
    reading.feed(data[:half])
    reading.feed(data[half:])
    return reading.close()


def of_file(read: Callable[[Path], object], name: str) -> Callable[[bytes], object]:
    """Return what reads bytes as a file of this name."""

    def read_bytes(data: bytes) -> object:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            path.write_bytes(data)
            return read(path)

    return read_bytes


def validated(path: Path) -> object:
    """Check a file as ``msauto validate`` does."""
    return validate([str(path)], ResolveOptions(()))


def read_plan(path: Path) -> object:
    """Read a saved plan."""
    return read_plan_file(str(path))


def timeline(ending: str) -> Reader:
    """Return the reader of one format of timelines."""

    def read(data: bytes) -> object:
        return read_timeline(data, f"x.{ending}", CLOCK)

    return Reader(read, TIMELINES.glob(f"*.{ending}"), (TextFileError,))


READERS: Final[dict[str, Reader]] = {
    "clip": Reader(parse_clip, XML.glob("clip/*.answer")),
    "listing": Reader(read_listing, XML.glob("listing/*.answer")),
    "mam": Reader(parse_mam, XML.glob("listing/*.answer")),
    "databases": Reader(parse_databases, XML.glob("listing/*.answer")),
    "xmp": Reader(parse_xmp, XML.glob("xmp/*.answer")),
    "channel": Reader(lambda data: parse_channel(data, "ticker"), XML.glob("channel/*.answer")),
    "channels": Reader(parse_channels, XML.glob("channel/*.answer")),
    "failure": Reader(parse_failure, XML.glob("failure/*.answer")),
    "edl": timeline("edl"),
    "otio": timeline("otio"),
    "vtt": timeline("vtt"),
    "srt": timeline("srt"),
    "csv": timeline("csv"),
    "txt": timeline("txt"),
    "yaml": Reader(lambda data: load_yaml(data, "x.yml"), (ROOT / "playbooks").rglob("*.yml")),
    "playbook": Reader(of_file(validated, "play.yml"), (ROOT / "playbooks").rglob("*.yml")),
    "settings": Reader(
        of_file(load_settings, "msauto.toml"), ROOT.rglob("playbooks/*.toml"), (InputError,)
    ),
    "content": Reader(
        of_file(load_content, "studio.yml"),
        [ROOT / "docs/examples/studio.yml"],
        (MsautoError, ValueError),
    ),
    "plan": Reader(of_file(read_plan, "p.json"), GOLDEN.glob("*.json")),
    "json": Reader(parse_json, GOLDEN.glob("*.json"), (ValueError, RecursionError)),
    "text": Reader(decode, TIMELINES.glob("*.*"), (TextFileError,)),
}
