"""Whatever a server holds, and however it shows it: exported and planned, it changes nothing and nothing is wrong."""

from __future__ import annotations

import asyncio
import tempfile
import unicodedata
from collections.abc import Mapping
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from msauto.api.stages import make_plan
from msauto.api.workplace import StageContext
from msauto.cli.main import main
from msauto.concurrency import SystemClock
from msauto.ledger.ledger import Ledger
from msauto.model.plan import Limits, Plan
from msauto.playbook.hosts import ResolveOptions
from msauto.playbook.resolve import resolve
from msauto.plugins.simulator.embedded import (
    Item,
    ServerState,
    SimChannel,
    SimClip,
    SimDialect,
    SimMarker,
    SimSegment,
    Simulator,
    empty_state,
)
from tests.examples import examples
from tests.tables import CASES

AWKWARD = yaml.safe_load((CASES / "playbook" / "awkward_values.yml").read_text(encoding="utf-8"))
TEXTS = st.one_of(
    st.sampled_from(AWKWARD["texts"]),
    st.text(
        st.characters(
            codec="utf-8",
            exclude_categories=["Cs", "Cc", "Cn", "Zl", "Zp"],
            exclude_characters="\ufeff",
        )
        | st.sampled_from("\n{}%#:\"'\\ "),
        max_size=12,
    ),
)
RATES = [
    *(Fraction(rate) for rate in (24, 25, 30, 50, 60)),
    *(Fraction(rate * 1000, 1001) for rate in (24, 30, 60)),
]
FOLDERS = ["", "Raw/2026", "AC\\/DC", "Архив", unicodedata.normalize("NFD", "Été"), "{{ folder }}"]
TRACKS = [
    "General",
    "Secondary Event",
    "Cue Point",
    "Profanity End",
    "",
    "House track",
    "CUE_POINT",
    "general",
]
FRAMES = 2000
FIELDS = ("type", "comment", "layer", "user_0", "user_7")

markers = st.lists(
    st.fixed_dictionaries(
        {
            "uid": st.integers(-1, 9),
            "pos": st.integers(0, 3) | st.integers(0, 2500),
            "track": st.sampled_from(TRACKS),
        },
        optional={
            "title": TEXTS,
            "comment": TEXTS,
            "rating": st.sampled_from(["0", "3", "-1", "five"]),
            "player": TEXTS,
            "Command": TEXTS,
        },
    ),
    max_size=5,
)
segments = st.lists(
    st.fixed_dictionaries(
        {
            "number": st.integers(0, 4),
            "start": st.integers(0, 2100),
            "duration": st.integers(0, 1000),
        },
        optional={
            "title": TEXTS,
            "track": st.just("House"),
            "rating": st.just(2),
            "keywords": TEXTS,
        },
    ),
    max_size=4,
)
clips = st.fixed_dictionaries(
    {
        "rate": st.sampled_from(RATES),
        "folder": st.sampled_from(FOLDERS),
        "fields": st.dictionaries(st.sampled_from(FIELDS), TEXTS, max_size=3),
        "points": st.dictionaries(
            st.sampled_from(["first_frame", "last_frame", "icon_pos"]), st.integers(0, 2500)
        ),
        "xmp": st.dictionaries(
            st.sampled_from(["dc:title", "dc:subject", "house:no", "plain"]),
            st.lists(TEXTS, max_size=3),
            max_size=3,
        ),
        "markers": markers,
        "segments": segments,
        "links": st.sets(
            st.tuples(st.sampled_from(FOLDERS), st.sampled_from(["", "Другое имя", "{{ link }}"]))
        ),
        "finalized": st.booleans(),
    }
)
items = st.lists(
    st.fixed_dictionaries(
        {"guid": st.sampled_from(["n-1", "n-2.txt", "n-3.xml", "{{ g }}"])},
        optional={
            "title": TEXTS,
            "description": TEXTS,
            "link": TEXTS,
            "pub_date": st.just("2026-11-20T10:00:00"),
        },
    ),
    max_size=3,
    unique_by=lambda item: item["guid"],
)
DIALECTS: list[tuple[list[str], dict[str, str]]] = [
    ([], {}),
    ([], {"link_delete": "by_title"}),
    (["link_fields=hidden", "xmp_shape=element"], {}),
    (["link_fields=reported_when_set", "listing_depth=shallow"], {}),
    (["position_origin=in"], {"position_origin": "in"}),
    (["xmp_without_field=error", "segment_keywords=hidden"], {}),
    (["xmp_shape=nested", "list_separator=;", "xml_wrapper=stray_end"], {"list_separator": ";"}),
    (["xmp_shape=unreadable", "link_folder=own"], {}),
    (["title_address=ns", "not_found=200_text", "rss_shape=atom"], {"title_address": "ns"}),
    (["rss_guid=file", "xml_namespace=default"], {"rss_guid": "file"}),
]


def put(state: ServerState, title: str, sourced: Mapping[str, Any]) -> SimClip:
    news = state.add_database("NEWS")
    clip = news.add_clip(
        title,
        sourced["folder"],
        frames=FRAMES,
        rate=sourced["rate"],
        finalized=sourced["finalized"],
    )
    clip.create_time = f"2026-11-13T10:00:{len(news.by_title):02}"
    clip.home.fields.update(
        sourced["fields"], **{name: str(frame) for name, frame in sourced["points"].items()}
    )
    clip.xmp.update({name: list(values) for name, values in sourced["xmp"].items()})
    for each in sourced["markers"]:
        texts = {
            name: value for name, value in each.items() if name not in {"uid", "pos"} and value
        }
        clip.markers.append(SimMarker(each["uid"], each["pos"], texts))
    for each in sourced["segments"]:
        titles = [each["title"], "another title"] if each.get("title") else []
        segment = SimSegment(each["number"], each["start"], each["duration"], titles)
        segment.track, segment.rating = each.get("track", ""), each.get("rating", 0)
        segment.keywords = each.get("keywords", "")
        clip.segments.append(segment)
    for folder, name in sorted(sourced["links"]):
        if (folder, name or title) != (sourced["folder"], title):
            news.add_entry(clip, folder, f"{name} of {title}" if name else title)
    return clip


def inventory(folder: Path, url: str, dialect: Mapping[str, str]) -> str:
    server = {"url": url, "dialect": dict(dialect)}
    path = folder / "inventory.yml"
    path.write_text(
        yaml.safe_dump({"all": {"hosts": {"studio": {"server": server, "database": "NEWS"}}}})
    )
    return str(path)


def plan(folder: Path, playbooks: list[Path], where: str) -> Plan:
    options = ResolveOptions(tuple(map(str, playbooks)), (where,), env={}, now=datetime.now(UTC))
    with Ledger.open(folder / "state", readonly=True) as ledger:
        work = make_plan(StageContext(ledger, resolve(options), SystemClock(), forks=4), Limits())
        return asyncio.run(work)


def check(sim: Simulator, own: Mapping[str, str], *arguments: str) -> int:
    """Export all of it, plan what was exported; return how many targets there were."""
    with tempfile.TemporaryDirectory() as name:
        folder, out = Path(name), Path(name) / "out"
        where = inventory(folder, sim.url, own)
        sim.clear_log()
        assert main(["export", "-i", where, "--out", str(out), *arguments]) == 0
        playbooks = sorted(out.rglob("*.yml"))
        if not playbooks:
            return 0
        assert main(["validate", "-i", where, *map(str, playbooks)]) == 0
        found = plan(folder, playbooks, where)
        texts = "\n".join(path.read_text() for path in playbooks)
        assert not found.targets, ([t.error or t.changes for t in found.targets], texts)
        assert (found.requests, found.errors) == (0, 0)
        assert not sim.writes()
        return found.unchanged


@pytest.mark.scale
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    database=st.dictionaries(st.sampled_from(AWKWARD["titles"]), clips, min_size=1, max_size=3),
    dialect=st.sampled_from(DIALECTS),
)
def test_a_whole_database(
    sim: Simulator, database: dict[str, Any], dialect: tuple[list[str], dict[str, str]]
) -> None:
    shown, own = dialect
    sim.state = empty_state()
    sim.dialect = SimDialect.parse(shown)
    for title, sourced in database.items():
        put(sim.state, title, sourced)
    assert check(sim, own) >= len(database)


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(sourced=items, dialect=st.sampled_from(DIALECTS))
def test_a_channel(
    sim: Simulator, sourced: list[dict[str, str]], dialect: tuple[list[str], dict[str, str]]
) -> None:
    shown, own = dialect
    sim.state = empty_state()
    sim.dialect = SimDialect.parse(shown)
    channel = SimChannel("ticker / {{ one }}", "Ticker")
    channel.items[:] = [Item(each["guid"], b"", **each) for each in sourced]
    sim.state.channels[channel.name] = channel
    assert check(sim, own, "--channel", channel.name) == 1
