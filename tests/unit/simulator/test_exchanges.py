"""One runner for ``tests/cases/exchanges/*.yml``: what the embedded server answers to requests, and what it holds then.

A step is a ``command`` of a clip (``of``, by default Long Film) with its parameters (``to``), or a request that ``ask``
has whole, with a ``body``. The ``status`` is 200 unless declared, and ``text`` is in the answer. ``attrs`` are those of
the clip that its answer shows, ``titles`` those of a listing, ``counts`` how often the answer has an XPath. Other steps
set switches of the ``server``, or do what ``others`` do. ``shows`` is what the server holds (see :mod:`tests.stories`).
"""

from __future__ import annotations

import json

import pytest

from msauto.plugins.simulator.embedded import Simulator
from tests.stories import Given, Others, stories, texts
from tests.unit.simulator.asking import Asker


@pytest.mark.parametrize("story", stories("exchanges", "server"))
def test_exchange(sim: Simulator, ask: Asker, story: Given) -> None:
    others = Others(sim)
    sim.dialect = sim.dialect.with_values(story["server"])
    for number, step in enumerate(story["steps"], 1):
        try:
            _take(step, sim, ask, others)
        except Exception as error:
            error.add_note(f"step {number}: {json.dumps(step, ensure_ascii=False)}")
            raise


def _take(step: Given, sim: Simulator, ask: Asker, others: Others) -> None:
    (verb, given), *rest = step.items()
    more = dict(rest)
    title = more.pop("of", "Long Film")
    match verb:
        case "server":
            sim.dialect = sim.dialect.with_values(given)
        case "others":
            others.do(given)
        case _:
            if verb == "command":
                reply = ask.command(title, given, **more.pop("to", {}))
            else:
                method, _, target = given.partition(" ")
                body = more.pop("body", None)
                reply = ask.ask(method, target, body.encode() if isinstance(body, str) else body)
            assert reply.status == more.pop("status", 200), reply
            for word in texts(more.pop("text", [])):
                assert word in reply.text
            for path, count in more.pop("counts", {}).items():
                assert len(reply.xml.findall(path)) == count, path
            if "titles" in more:
                found = [
                    each.text or "" for each in reply.xml.iterfind(".//Clip/Attr[@name='title']")
                ]
                assert found == more.pop("titles")
    if "attrs" in more:
        shown = ask.attrs(title)
        assert {name: shown.get(name) for name in more["attrs"]} == more.pop("attrs")
    for name, expected in more.pop("shows", {}).items():
        others.check(name, expected)
    assert not more, f"unknown keys {[*more]}"
