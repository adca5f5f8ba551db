"""What a ticker shows is never lost, and never stays beside what is put for it, whatever its guids and files are.

`exactly` removes nothing from a channel in which a desired item cannot be recognised. Channels
may have several items of one guid, items in other files, items without guids, and addresses as guids. They too end as
desired and with nothing left to plan, or with a refusal.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msauto.model.requests import default_file, file_key
from msauto.model.server import Dialect
from msauto.plugins.simulator.embedded import SimDialect, Simulator, empty_state
from msauto.report.text import render_result
from tests.examples import examples
from tests.stage import Stage
from tests.unit.planning.planning_world import stage
from tests.unit.planning.playbook_forms import rss_intent

TASK: dict[str, Any] = {
    "name": "The ticker",
    "rss": {
        "channel": "ticker",
        "items": [{"guid": "n-1", "text": "Storm warning"}],
        "exactly": True,
    },
}


class HashedGuids(BaseHTTPRequestHandler):
    """A channel whose guids are hashes of the file's name: an item cannot be recognised by its guid."""

    files: ClassVar[dict[str, str]] = {}
    writes: ClassVar[list[str]] = []
    drops: ClassVar[bool] = False  # it accepts a file, and does not show it

    def log_message(self, *args: Any) -> None:
        del args

    def answer(self, text: str) -> None:
        data = text.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        items = "".join(
            f"<item><guid>{hashlib.sha1(name.encode()).hexdigest()}</guid><title>{text}</title></item>"
            for name, text in self.files.items()
        )
        self.answer(f"<rss><channel><title>ticker</title>{items}</channel></rss>")

    def do_PUT(self) -> None:
        name = unquote(urlsplit(self.path).path.rpartition("/")[2])
        self.writes.append(f"PUT {name}")
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if not self.drops:
            self.files[name] = text
        self.answer("")

    def do_DELETE(self) -> None:
        guid = parse_qs(urlsplit(self.path).query)["guid"][0]
        self.writes.append(f"DELETE {guid}")
        for name in [
            name for name in self.files if hashlib.sha1(name.encode()).hexdigest() == guid
        ]:
            del self.files[name]
        self.answer("")


class Other:
    """Replaces the simulator of the stage."""

    dialect = SimDialect()

    def __init__(self, url: str) -> None:
        self.url = url


@pytest.fixture
def other() -> Iterator[Any]:
    HashedGuids.files, HashedGuids.writes, HashedGuids.drops = {}, [], False
    with ThreadingHTTPServer(("127.0.0.1", 0), HashedGuids) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield Other(f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
        thread.join()


def test_an_item_that_cannot_be_recognised_is_not_removed_as_a_stranger(
    other: Any, tmp_path: Path
) -> None:
    HashedGuids.files = {"n-1.txt": "Sunny", "n-0.txt": "Old"}
    stage = Stage(other, tmp_path)
    result = stage.apply(TASK)
    assert HashedGuids.files["n-1.txt"] == "Storm warning"
    assert HashedGuids.writes == ["PUT n-1.txt"], "what may be ours was deleted"
    (target,) = result.targets
    assert target.outcome == "failed"
    assert "n-1" in target.message


@pytest.mark.parametrize("exactly", [False, True])
def test_an_item_that_does_not_show_is_told_and_in_doubt(
    other: Any, tmp_path: Path, exactly: bool
) -> None:
    HashedGuids.files, HashedGuids.drops = {"n-0.txt": "Old"}, True
    stage = Stage(other, tmp_path)
    task = {"rss": {**TASK["rss"], "exactly": exactly}}
    result = stage.apply(task)
    (target,) = result.targets
    assert target.outcome == "failed"
    text = " ".join("".join(render_result(result)).split())
    assert "n-1: desired, but missing" in text
    assert "`rss_guid`" in text
    again = stage.apply(task)
    assert "it does not show, and it is not made again" in " ".join(again.plan.warnings)
    assert HashedGuids.writes == ["PUT n-1.txt"]


def test_what_shows_under_a_guid_of_the_server_is_nobodys(other: Any, tmp_path: Path) -> None:
    HashedGuids.files = {"foreign.txt": "Storm warning"}
    stage = Stage(other, tmp_path)
    assert not stage.apply({"rss": {**TASK["rss"], "exactly": False}}).ok
    absent = {"rss": {"channel": "ticker", "items": [{"guid": "n-1", "state": "absent"}]}}
    stage.apply(absent)
    assert HashedGuids.files == {"foreign.txt": "Storm warning", "n-1.txt": "Storm warning"}


def test_an_item_that_is_recognised_lets_the_others_go(tmp_path: Path) -> None:
    state = empty_state()
    state.add_channel("ticker")
    with Simulator(state=state) as sim:
        stage = Stage(sim, tmp_path)
        assert stage.apply(
            {**TASK, "rss": {**TASK["rss"], "items": [{"guid": "n-0", "text": "Old"}]}}
        ).ok
        sim.clear_log()
        assert stage.apply(TASK).ok
        assert [entry.method for entry in stage.sent()] == ["PUT", "DELETE"]
        assert stage.plan(TASK).requests == 0


# Duplicates, other files, no guids, addresses as guids ------------------------------------------------------------

ADDRESS = "http://example.com/4711?a=1"
GUIDS = ("n-1", "n-2", "n-3", ADDRESS)
texts = st.sampled_from(["Storm", "Calm", "Ferries\nwait in port"])
documents = st.fixed_dictionaries({"title": texts, "description": st.sampled_from(["D", "E"])})


@st.composite
def live_items(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A folder of a feed that others fill too: texts under their names, documents with any guid, or with none."""
    files: dict[str, dict[str, Any]] = {}
    for number in range(draw(st.integers(0, 5))):
        guid = draw(st.sampled_from(GUIDS))
        if draw(st.booleans()) and guid != ADDRESS:
            text = draw(texts)
            files[f"{guid}.txt"] = {
                "guid": guid,
                "title": text.partition("\n")[0],
                "description": text,
            }
        else:
            own = guid != ADDRESS and draw(st.booleans())
            shown = guid if own else draw(st.sampled_from([guid, guid, ""]))
            files[f"{guid}.xml" if own else f"feed-{number}.xml"] = {
                "guid": shown,
                **draw(documents),
            }
    return [{"file": file, **files[file]} for file in sorted(files)]


@st.composite
def desired_items(draw: st.DrawFn) -> list[dict[str, Any]]:
    desired = []
    for guid in draw(st.lists(st.sampled_from(GUIDS), unique=True, max_size=4)):
        kind = draw(st.sampled_from(["text", "item", "absent"]))
        item: dict[str, Any] = {"guid": guid}
        if kind == "absent":
            desired.append(item | {"state": "absent"})
            continue
        item[kind] = draw(texts if kind == "text" else documents)
        if draw(st.integers(0, 3)) == 0:
            item["file"] = f"slot-{len(desired)}.{'txt' if kind == 'text' else 'xml'}"
        desired.append(item)
    return desired


@settings(max_examples=examples(300))
@given(
    live=live_items(),
    desired=desired_items(),
    exactly=st.booleans(),
    delete=st.sampled_from(["all", "first"]),
    update=st.sampled_from(["put", "delete_put"]),
)
def test_a_guid_comes_to_stand_once(
    live: list[dict[str, Any]],
    desired: list[dict[str, Any]],
    exactly: bool,
    delete: str,
    update: Any,
) -> None:
    dialect = Dialect(rss_update=update)
    context = stage(
        dialect=dialect, channels={"ticker": [dict(item) for item in live]}, rss_delete=delete
    )
    intent = rss_intent(
        {"channel": "ticker", "items": desired, "exactly": exactly}, file="task.yml"
    )
    runs = 0
    twins = {guid for guid, count in Counter(item["guid"] for item in live).items() if count > 1}
    while (found := context.plan(intent)).targets:
        (error,) = [target.error for target in found.targets]
        if error is not None:
            if "live items have the guid" in error:
                # One DELETE left items of the guid beside the file that was put; or the live item was in another file.
                assert runs or any(item["guid"] in twins for item in desired if "state" not in item)
            else:
                assert "may be the file of" in error or "which holds no guid" in error
            assert runs or context.server.channels["ticker"] == live
            return
        wrong = context.apply(found)
        requests = [
            f"{each.method} {each.path}" for target in found.targets for each in target.requests
        ]
        assert delete == "first" or len(set(requests)) == len(requests), "one DELETE for a guid"
        runs += 1
        assert runs <= len(live) + 2, "planned for ever"
    assert runs == 0 or not wrong
    now = context.server.channels["ticker"]
    named = {item["guid"] for item in desired}
    present = [item for item in desired if "state" not in item]
    others = [
        item for item in live if not item["guid"] or (item["guid"] not in named and not exactly)
    ]
    assert [item for item in live if item in others] == [item for item in now if item in others], (
        "others are kept"
    )
    assert len(now) == len(present) + len(others)
    for item in present:
        if "text" in item:
            assert any(item["text"] in (each["title"], each["description"]) for each in now)
        else:
            assert (item["item"]["title"], item["item"]["description"]) in [
                (each["title"], each["description"]) for each in now
            ]


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20),
        unique=True,
    )
)
def test_no_two_guids_give_one_default_file(guids: list[str]) -> None:
    named = [*guids, ADDRESS, ADDRESS.replace("/", "-"), "con", "n-1.", "a" * 300, "a" * 301]
    named += [
        default_file(guid, text=True).removesuffix(".txt") for guid in named
    ]  # guids that look so derived
    folded: dict[str, str] = {}
    for guid in dict.fromkeys(named):
        name = default_file(guid, text=True)
        assert not set(name) & set('<>:"/\\|?*')
        assert folded.setdefault(name, guid) == guid
        assert file_key(name) == file_key(default_file(guid, text=True))
