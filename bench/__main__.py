"""All benchmarks, as ratios against baselines that run beside them: `python -m bench [--help]`.

Each figure is CPU time (user and system) of the process measured, or where the server waits, wall time. Marginal
figures are the difference between a large and a small size, divided by the difference of the sizes. Each round runs
the baseline and msauto one after the other, and gives one ratio; the table shows the median, and the spread over the
rounds (`--rounds`). For plans, it also shows the number of reads, and the least possible number.
"""

from __future__ import annotations

import argparse
import compileall
import json
import statistics
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench.cases import CASES, Case, Figures, measure

NOISE = 1.1
"""A case is slower than an earlier run if its ratio grew by more than this factor, and by more than its spread."""


def summary(rounds: list[Figures]) -> dict[str, float]:
    """Return the medians of a case's rounds, and the spread of its ratio."""
    names = rounds[0].keys()
    found = {name: statistics.median(each[name] for each in rounds) for name in names}
    if "ratio" in found:
        ratios = [each["ratio"] for each in rounds]
        found["spread"] = max(ratios) - min(ratios)
    return found


def line(case: Case, found: dict[str, float]) -> str:
    """Return a row of the table."""
    ratio = f"{found['ratio']:8.3g}" if "ratio" in found else " " * 8
    spread = f"±{found['spread'] / 2:5.2g}" if "spread" in found else " " * 6
    goal = f"{case.goal:g}" if case.goal else ""
    reads = f"{found['reads']:.0f}/{found['least']:.0f}" if "reads" in found else ""
    return (
        f"{case.name:36}{found.get('base', 0):11.1f}{found['msauto']:11.1f} {case.unit:8}{ratio} {spread}{goal:>7}"
        f"{found['mib']:9.0f}{reads:>16}"
    )


def slower(
    found: dict[str, dict[str, float]], earlier: dict[str, dict[str, float]]
) -> Iterable[str]:
    """Name the cases that became slower beyond the noise, or take more reads."""
    for name, now in found.items():
        before = earlier.get(name, {})
        key = "ratio" if "ratio" in now and "ratio" in before else "msauto"
        if (
            key in before
            and now[key] > before[key] * NOISE
            and now[key] - before[key] > before.get("spread", 0)
        ):
            yield f"slower: {name}: {before[key]:.2f} -> {now[key]:.2f} ({key})"
        if now.get("reads", 0) > before.get("reads", now.get("reads", 0)):
            yield f"more reads: {name}: {before['reads']:.0f} -> {now['reads']:.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Print all ratios, msauto : baseline."
    )
    parser.add_argument("cases", nargs="*", help="parts of the names of cases; all without one")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", metavar="FILE", help="write the figures")
    parser.add_argument(
        "--against", metavar="FILE", help="name what is slower than in an earlier --json FILE"
    )
    flags = parser.parse_args()
    # As an installation has it: where nothing may write bytecode, each process would compile all of msauto, in 0.3 s.
    compileall.compile_dir(Path(__file__).parents[1] / "msauto", quiet=1)
    print(
        f"{'':36}{'baseline':>11}{'msauto':>11} {'':8}{'ratio':>8}{'':7}{'target':>7}{'MiB':>9}{'reads/least':>16}"
    )
    found: dict[str, Any] = {}
    for case in CASES:
        chosen = any(part in case.name for part in flags.cases) if flags.cases else True
        if not chosen:
            continue
        found[case.name] = summary([measure(case) for _ in range(flags.rounds)])
        print(line(case, found[case.name]), flush=True)
    if flags.json:
        Path(flags.json).write_text(json.dumps(found, indent=2) + "\n")
    if flags.against:
        worse = list(slower(found, json.loads(Path(flags.against).read_bytes())))
        print("\n".join(worse) or "nothing is slower")
        sys.exit(1 if worse else 0)


if __name__ == "__main__":
    main()
