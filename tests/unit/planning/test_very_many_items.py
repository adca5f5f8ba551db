"""Lists of very many items: the work of matching them grows no faster than they do."""

from __future__ import annotations

import time

from msauto.aspects.comparison import Item
from msauto.aspects.matching import ListItem, match
from msauto.model.desired import TaskSource

MANY = 16_000


def test_very_many_desired_items_find_their_live_ones_in_time() -> None:
    source = TaskSource("news.yml", 1)
    desired: list[ListItem] = []
    live: dict[str, Item] = {}
    for frame in range(MANY):
        named: Item = {"at": frame}
        desired.append(ListItem(None, f"at {frame}", named, source, (str(frame),), present=True))
        live[str(frame + 1)] = {"at": frame}
    began = time.thread_time()
    matching = match(desired, live, lambda item: (str(item["at"]),), lambda _named, _shown: [])
    assert len(matching.pairs) == MANY
    assert time.thread_time() - began < 2  # a tenth of that; ten seconds where each looks at all
