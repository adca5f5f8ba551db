"""Show what happens in one world: ``python -m tests.worlds.show SEED KIND [KIND]``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.worlds.run import a_stand
from tests.worlds.scenario import scenario
from tests.worlds.watch import Watch


def lines(watch: Watch) -> Iterator[str]:
    """Yield each event of a run with what it changed."""
    for place, event in enumerate(watch.events):
        if place == watch.planned:
            yield "    (planned)"
        marks = [name for name in ("late", "mixed", "hooked", "paused") if getattr(event, name)]
        yield " ".join([f"{place:3}", event.line or "ANOTHER USER", *marks])
        yield from (
            f"      {tuple(each.thing)}: {each.before} → {each.after}" for each in event.effects
        )


def main(seed: str, *kinds: str) -> None:
    """Play the world, and print its runs and what is wrong."""
    with TemporaryDirectory() as folder, a_stand(Path(folder)) as stand:
        world = scenario(int(seed), *kinds)
        wrong = stand.wrong(world)
        shown = [str(world)]
        for number, watch in enumerate(stand.watches, 1):
            shown += [f"run {number}:", *lines(watch)]
        sys.stdout.write("\n".join([*shown, *(f"WRONG {each}" for each in wrong), ""]))


if __name__ == "__main__":
    main(*sys.argv[1:])
