"""``msauto probe`` against every switch of the simulator that it can learn; what it touches is as before."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any

import pytest

from msauto.errors import MsautoError, NotSentError, RefusedError, RejectedError
from msauto.model.live import Asset, Link
from msauto.model.server import Auth, Dialect, Secret, ServerSpec
from msauto.plugins.probe.observations import ProbeResult
from msauto.plugins.probe.probe import TrialOptions, probe, probe_by_trial
from msauto.plugins.probe.scratch_channel import probe_by_item
from msauto.plugins.simulator.embedded import (
    ServerState,
    SimDialect,
    SimMarker,
    SimSegment,
    Simulator,
)
from msauto.plugins.simulator.embedded.storage import clip_xml
from tests.tables import one_fast_in, table

TITLE = "Scratch / тест"
FIELD = "dc:rights"


def state() -> ServerState:
    made = ServerState()
    news = made.add_database("NEWS")
    clip = news.add_clip(
        TITLE, "Tests/2026", frames=500, create_time="2026-11-19T10:00:00", mime_type=2
    )
    clip.segments = [
        SimSegment(1, 0, 100, ["One"]),
        SimSegment(4, 120, 380, ["Four"], track="Program", rating=3),
    ]
    clip.markers = [
        SimMarker(7, 30, {"title": "Old", "track": "General", "rating": "5", "user": "anna"})
    ]
    clip.xmp = {"dc:title": ["Scratch"], FIELD: ["Kanal 5"], "dc:subject": ["a", "b"]}
    clip.home.fields["first_frame"] = "3"
    news.add_clip(
        "Part: two", "Tests/2026", frames=50, create_time="2026-11-18T10:00:00", mime_type=4
    )
    news.add_entry(clip, "Links", "On air")
    channel = made.add_channel("ticker")
    channel.items.append(_item("n-1.txt"))
    return made


def _item(file: str) -> Any:
    from msauto.plugins.simulator.embedded.rss import read_item

    return read_item(file, b"Headline", SimDialect())


@pytest.fixture(scope="module")
def running() -> Iterator[Simulator]:
    with Simulator(state()) as simulator:
        yield simulator


@pytest.fixture
def sim(running: Simulator) -> Iterator[Simulator]:
    running.state, running.dialect = state(), SimDialect()
    running.faults.clear()
    running.clear_log()
    yield running
    assert "/storage" not in [entry.target for entry in running.log]
    assert not [entry.target for entry in running.log if "/WP" in entry.target]


@dataclass
class Still:
    """A clock that hardly waits, and does something else meanwhile."""

    meanwhile: Callable[[], object] = lambda: None
    longest: float = 0.0

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        self.meanwhile()
        await asyncio.sleep(min(seconds, self.longest))


def let_all(asset: Asset, links: tuple[Link, ...] | None) -> None:
    del asset, links


@dataclass
class Told:
    """Findings by name, what was missed, and what was reported meanwhile."""

    findings: ProbeResult
    told: list[str]

    def __getitem__(self, name: str) -> Any:
        values = {each.value for each in self.findings.found if each.name == name}
        assert len(values) == 1, (name, self.findings)
        return values.pop()

    @property
    def missed(self) -> dict[str, str]:
        return {each.name: each.why for each in self.findings.missed}


def read(sim: Simulator, *switches: str, title: str | None = TITLE) -> Told:
    sim.dialect = SimDialect.parse(switches)
    findings = asyncio.run(probe(ServerSpec("sim", sim.url), "NEWS", title=title))
    assert sim.writes() == []
    assert {entry.method for entry in sim.log} <= {"GET", "HEAD"}
    return Told(findings, [])


def shown(sim: Simulator) -> dict[str, Any]:
    """The asset as the server shows it, all folders, and the XMP fields that are not empty."""
    database = sim.state.databases["NEWS"]
    clip = database.clip(TITLE)
    return {
        "clip": clip_xml(clip.home, SimDialect()),
        "xmp": {name: values for name, values in clip.xmp.items() if values},
        "entries": [(entry.folder, entry.title) for entry in database.root.walk()],
    }


def try_on(
    sim: Simulator,
    *switches: str,
    dialect: Dialect | None = None,
    clock: Still | None = None,
    **trial: Any,
) -> Told:
    sim.dialect = SimDialect.parse(switches)
    before = shown(sim)
    told: list[str] = []
    findings = asyncio.run(
        probe_by_trial(
            ServerSpec("sim", sim.url, dialect=dialect or Dialect()),
            "NEWS",
            TrialOptions(TITLE, **{"xmp_field": FIELD} | trial),
            clock=clock or Still(),
            report=told.append,
            refuse=let_all,
        )
    )
    if not findings.left:
        assert shown(sim) == before
    return Told(findings, told)


# By reading -----------------------------------------------------------------------------------------------------


@table("server/reading_learns", "switch", "name", "value")
def test_reading_learns(sim: Simulator, switch: str, name: str, value: str) -> None:
    assert read(sim, switch)[name] == value


@table("server/reading_cannot_learn", "switch", "name", "why")
def test_reading_cannot_learn(sim: Simulator, switch: str, name: str, why: str) -> None:
    assert why in read(sim, switch).missed[name]


def test_clip_to_ask_for_is_found(sim: Simulator) -> None:
    told = read(sim, title=None)
    assert told["title_address"] == "plain"
    assert any("Part%3A%20two: found" in each.evidence for each in told.findings.found)


def test_empty_database_teaches_little_and_says_so(sim: Simulator) -> None:
    sim.state.add_database("EMPTY")
    findings = asyncio.run(probe(ServerSpec("sim", sim.url), "EMPTY"))
    assert {"title_address", "xmp_read"} <= {each.name for each in findings.missed}
    assert [each.value for each in findings.found] == ["auto"]


def test_unknown_database_stranger_and_nobody(sim: Simulator) -> None:
    with pytest.raises(MsautoError, match="no media database 'NEWZ'"):
        asyncio.run(probe(ServerSpec("sim", sim.url), "NEWZ"))
    sim.dialect = SimDialect.parse(["auth=basic"])
    with pytest.raises(RejectedError, match="401") as caught:
        asyncio.run(probe(ServerSpec("sim", sim.url, auth=Auth(bearer=Secret("geheim"))), "NEWS"))
    assert "geheim" not in str(caught.value)
    with pytest.raises(NotSentError):
        asyncio.run(probe(ServerSpec("sim", "http://127.0.0.1:9"), "NEWS"))


@pytest.mark.parametrize(
    "fault", ["garbage@GET .*", "html@GET .*", "status:500@GET .*", "truncate@GET .*"]
)
def test_hostile_answers_are_an_error_or_missed(sim: Simulator, fault: str) -> None:
    sim.faults.add(f"{fault}+6")
    try:
        findings = asyncio.run(probe(ServerSpec("sim", sim.url), "NEWS", title=TITLE))
    except MsautoError:
        return
    assert findings.missed


# By trial -------------------------------------------------------------------------------------------------------


@table("server/trial_learns", "switches", "name", "value")
def test_trial_learns_and_puts_back(sim: Simulator, switches: str, name: str, value: str) -> None:
    told = try_on(sim, *switches.split())
    assert told[name] == value
    assert told.findings.left == ()
    assert told.told == []


@pytest.mark.parametrize("update", ["refuse", "overwrite", "duplicate"])
def test_a_server_that_numbers_segments_by_their_starts_is_put_back(
    sim: Simulator, update: str
) -> None:
    sim.state.clip(TITLE).segments[1].number = 2
    told = try_on(sim, "segment_numbers=by_start", f"segment_update={update}")
    assert told["segment_numbers"] == "by_start"
    assert told["segment_update"] == ("overwrite" if update == "overwrite" else "recreate")
    assert (told.findings.left, told.told) == ((), [])


def test_the_last_segment_does_not_show_how_a_server_numbers(sim: Simulator) -> None:
    sim.state.clip(TITLE).segments = [SimSegment(1, 0, 100)]
    assert "name an asset with a later one" in try_on(sim).missed["segment_numbers"]


def test_values_shown_as_one_text_teach_no_separator(sim: Simulator) -> None:
    told = try_on(sim, "xmp_shape=lines", "list_separator=;")
    assert "one;two" in told.missed["list_separator"]


@pytest.mark.parametrize("xmp_field", [None, "dc:subject"])
def test_field_that_cannot_be_put_back_is_not_written(
    sim: Simulator, xmp_field: str | None
) -> None:
    told = try_on(sim, xmp_field=xmp_field)
    assert (
        "--xmp-field" in told.missed["list_separator"]
        or "put back" in told.missed["list_separator"]
    )
    assert not [entry for entry in sim.writes() if "SETUSERFIELDS" in entry.target]


def test_every_dialect_key_is_learned_or_missed_with_a_reason(sim: Simulator) -> None:
    told = read(sim)
    names = {each.name for each in told.findings.found} | set(told.missed)
    assert names == {key.name for key in fields(Dialect)}


def test_clip_without_room(sim: Simulator) -> None:
    clip = sim.state.clip(TITLE)
    clip.frames, clip.segments = 20, [SimSegment(1, 0, 20)]
    told = try_on(sim)
    assert {"segment_update", "marker_update", "position_origin"} <= told.missed.keys()
    assert told.findings.left == ()


@pytest.mark.parametrize("kind", ["unfinalized", "unknown", "protected"])
def test_refused_assets_are_not_touched(sim: Simulator, kind: str) -> None:
    sim.state.clip(TITLE).finalized = kind != "unfinalized"

    def refuse(asset: Asset, links: tuple[Link, ...] | None) -> None:
        if kind == "protected":
            raise RefusedError(f"{asset.title} is protected")

    title = "nobody" if kind == "unknown" else TITLE
    with pytest.raises(MsautoError) as caught:
        asyncio.run(
            probe_by_trial(
                ServerSpec("sim", sim.url),
                "NEWS",
                TrialOptions(title),
                clock=Still(),
                report=print,
                refuse=refuse,
            )
        )
    assert isinstance(caught.value, RefusedError) == (kind != "unknown")
    assert sim.writes() == []


# Trouble in the middle ------------------------------------------------------------------------------------------

COMMANDS = ["CREATESEGMENT", "CREATEMARKER", "SETFIELD", "SETUSERFIELDS"]


@pytest.mark.parametrize(
    "fault",
    one_fast_in(3, ["cut_before", "garbage", "truncate", "cut_after", "status:500", "html"]),
)
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("skip", [0, pytest.param(1, marks=pytest.mark.scale)])
def test_one_bad_answer_leaves_nothing(sim: Simulator, fault: str, command: str, skip: int) -> None:
    sim.faults.add(f"{fault}@POST .*{command}*1+{skip}")
    told = try_on(sim)
    assert told.findings.left == ()
    assert len({each.name for each in told.findings.found} & set(told.missed)) == 0


@pytest.mark.parametrize(
    "command", ["DELETESEGMENT", "DELETEMARKER", "SETFIELD&name=first_frame&val=3", "=Kanal"]
)
def test_what_is_left_is_told_exactly(sim: Simulator, command: str) -> None:
    sim.faults.add(f"status:500@POST .*{command}")
    (left,) = try_on(sim).findings.left or ()
    expected = {"DELETESEGMENT": "segment 5", "DELETEMARKER": "marker 8"}
    expected |= {"=Kanal": f"the field {FIELD} is ['one', 'two'] instead of ['Kanal 5']"}
    assert left == expected.get(command, "first_frame 10 instead of 3")


def test_dead_server_is_told_with_what_to_look_for(sim: Simulator) -> None:
    sim.faults.add("cut_after@POST .*CREATEMARKER*1")
    told = try_on(sim, clock=Still(lambda: sim.faults.add("cut_before@.*")))
    (left,) = told.findings.left or ()
    assert re.search(
        "look for: segment 5, titled msauto-probe-[0-9a-f]+; a marker titled msauto-probe", left
    )
    assert told.told[0].startswith(
        f"The trial ends here: server sim at {sim.url}: POST /storage/NEWS@"
    )
    assert "CREATEMARKER" in told.missed["position_origin"]
    assert told.missed["list_separator"] == "an answer was lost before"


@pytest.mark.parametrize("command", COMMANDS)
def test_interruption_takes_back(sim: Simulator, command: str) -> None:
    sim.faults.add(f"delay:0.4@POST .*{command}*1")
    before = shown(sim)
    told: list[str] = []

    async def main() -> None:
        trial = TrialOptions(TITLE, FIELD)
        work = probe_by_trial(
            ServerSpec("sim", sim.url),
            "NEWS",
            trial,
            clock=Still(longest=0.6),
            report=told.append,
            refuse=let_all,
        )
        task = asyncio.ensure_future(work)
        while not any(command in entry.target for entry in sim.writes()):  # noqa: ASYNC110 - of another thread
            await asyncio.sleep(0.005)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    assert told[0].startswith("Stopped. Undoing: ")
    assert told[1].startswith("An answer was lost")
    assert len(told) == 2
    assert shown(sim) == before


# A channel ------------------------------------------------------------------------------------------------------


def of_channel(sim: Simulator, clock: Still | None = None) -> tuple[ProbeResult, list[str]]:
    told: list[str] = []
    spec = ServerSpec("studio", sim.url)
    result = asyncio.run(
        probe_by_item(spec, "NEWS", "ticker", clock=clock or Still(), report=told.append)
    )
    return result, told


@pytest.mark.parametrize("guids", ["item", "file", "stem"])
def test_an_item_in_a_channel_shows_what_its_guid_is(sim: Simulator, guids: str) -> None:
    sim.dialect = SimDialect(rss_guid=guids)
    before = list(sim.state.channels["ticker"].items)
    result, told = of_channel(sim)
    assert (result.left, told) == ((), [])
    assert [each.value for each in result.found if each.name == "rss_guid"] == [guids]
    assert sim.state.channels["ticker"].items == before
    assert [entry.method for entry in sim.log if entry.method != "GET"] == ["PUT", "DELETE"]


def test_a_channel_of_texts_shows_the_tags(sim: Simulator) -> None:
    sim.dialect = SimDialect(rss_body="text", rss_guid="stem")
    result, _ = of_channel(sim)
    assert {"rss_guid": "stem", "rss_body": "text"}.items() <= {
        each.name: each.value for each in result.found
    }.items()


@table("server/trial_of_an_item_fails", "fault", "left", "words")
def test_an_item_that_is_refused_lost_or_stays_is_reported(
    sim: Simulator, fault: str, left: int, words: str
) -> None:
    sim.faults.add(fault)
    before = list(sim.state.channels["ticker"].items)
    result, told = of_channel(sim)
    assert len(result.left or ()) == left
    assert len(sim.state.channels["ticker"].items) == len(before) + left
    assert words in "\n".join(told)
    assert not [each for each in result.found if each.name == "rss_guid"] or "PUT" not in fault


def test_a_channel_that_does_not_exist_is_an_error_before_anything_is_put(sim: Simulator) -> None:
    sim.state.channels.clear()
    with pytest.raises(MsautoError, match="ticker"):
        of_channel(sim)
    assert [entry.method for entry in sim.log if entry.method != "GET"] == []
