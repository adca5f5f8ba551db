"""Instructions for each further asset: `python -m bench.instructions "bare read" "plan select" …`.

CPU time depends on what else runs on the machine. The number of instructions repeats within one percent, so it shows
small gains on a shared machine. Output: thousands. `perf stat` counts user and kernel; where it has no counters, as in
most virtual machines, `valgrind --tool=callgrind` counts the user's alone, at fewer assets, because it is slow.
"""

from __future__ import annotations

import re
import subprocess
import sys

from bench.cases import media_server

PERF = ("perf", "stat", "-x", ",", "-e", "instructions:u,instructions:k")
CALLGRIND = ("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null")
SIZES = {PERF: (300, 1800), CALLGRIND: (100, 400)}


def counter() -> tuple[str, ...]:
    """Return what counts here."""
    try:
        done = subprocess.run([*PERF, "true"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return CALLGRIND
    return PERF if done.returncode == 0 and "not supported" not in done.stderr else CALLGRIND


def instructions(counting: tuple[str, ...], name: str, size: int) -> float:
    """Return the instructions of one side in its own process."""
    with media_server(size) as url:
        command = [*counting, sys.executable, "-m", "bench.sides", name, str(size), url]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    counts = r"^([\d.]+),[^,]*,instructions" if counting is PERF else r"Collected : (\d+)"
    return sum(map(float, re.findall(counts, done.stderr, re.MULTILINE)))


def main() -> None:
    counting = counter()
    small, large = SIZES[counting]
    for name in sys.argv[1:]:
        each = (instructions(counting, name, large) - instructions(counting, name, small)) / (
            large - small
        )
        print(f"{name:16}{each / 1e3:10,.0f}", flush=True)


if __name__ == "__main__":
    main()
