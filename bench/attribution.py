"""Where the CPU time of a run goes, by package: `python -m bench.attribution "plan select" [ASSETS]`.

A timer of CPU time samples the stack each millisecond. A sample belongs to the innermost frame of msauto, aiohttp or
httpx2; work of other modules belongs to their caller. Collections of garbage are measured apart. The output has
microseconds for each asset, and the share.
"""

from __future__ import annotations

import gc
import signal
import sys
import time
from collections import Counter
from types import FrameType

from bench.cases import media_server
from bench.sides import SIDES

INTERVAL = 0.001
LIBRARIES = ("aiohttp", "httpx2", "yarl", "multidict", "asyncio")


class Sampler:
    """Counts samples by package while it runs, and the seconds of collections."""

    def __init__(self) -> None:
        self.samples: Counter[str] = Counter()
        self.collecting = 0.0
        self._began = 0.0

    def sample(self, _: int, frame: FrameType | None) -> None:
        while frame is not None:
            name = frame.f_globals.get("__name__", "")
            parts = name.split(".")
            if parts[0] == "msauto":
                self.samples[
                    ".".join(parts[:3]) if parts[1:2] == ["server"] else ".".join(parts[:2])
                ] += 1
                return
            if parts[0] in LIBRARIES:
                self.samples[
                    "asyncio"
                    if parts[0] == "asyncio"
                    else "aiohttp, yarl"
                    if parts[0] != "httpx2"
                    else name
                ] += 1
                return
            frame = frame.f_back
        self.samples["other"] += 1

    def collected(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            self._began = time.process_time()
        else:
            self.collecting += time.process_time() - self._began


def main() -> None:
    name, count = sys.argv[1], int((sys.argv[2:] or ["2000"])[0])
    sampler = Sampler()
    with media_server(count) as url:
        signal.signal(signal.SIGPROF, sampler.sample)
        gc.callbacks.append(sampler.collected)
        signal.setitimer(signal.ITIMER_PROF, INTERVAL, INTERVAL)
        cpu = time.process_time()
        SIDES[name](url, count)
        cpu = time.process_time() - cpu
        signal.setitimer(signal.ITIMER_PROF, 0)
    total = sum(sampler.samples.values())
    print(f"{name}, {count} assets: {cpu / count * 1e6:.0f} µs each, start included")
    for package, samples in sampler.samples.most_common(30):
        print(f"{package:36}{samples / total * cpu / count * 1e6:8.0f} µs{samples / total:8.1%}")
    print(
        f"{'(of these: collections)':36}{sampler.collecting / count * 1e6:8.0f} µs{sampler.collecting / cpu:8.1%}"
    )


if __name__ == "__main__":
    main()
