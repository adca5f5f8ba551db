"""Instructions for each further asset: `python -m bench.instructions "bare read" "plan select" …`.

CPU time depends on what else runs on the machine. The number of instructions, which `perf stat` of Linux counts,
repeats within one percent, so it shows small gains on a shared machine. Output: thousands, user and kernel.
"""

from __future__ import annotations

import subprocess
import sys

from bench.cases import media_server

SIZES = (300, 1800)


def instructions(name: str, size: int) -> float:
    """Return the instructions of one side in its own process."""
    counting = ["perf", "stat", "-x", ",", "-e", "instructions:u,instructions:k"]
    with media_server(size) as url:
        command = [*counting, sys.executable, "-m", "bench.sides", name, str(size), url]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    return sum(float(line.split(",")[0]) for line in done.stderr.splitlines() if "instructions" in line)


def main() -> None:
    small, large = SIZES
    for name in sys.argv[1:]:
        each = (instructions(name, large) - instructions(name, small)) / (large - small)
        print(f"{name:16}{each / 1e3:10,.0f}", flush=True)


if __name__ == "__main__":
    main()
