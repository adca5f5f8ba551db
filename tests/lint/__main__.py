"""The project's own checks: ``python -m tests.lint``, run by ``make lint``.

Prints each finding that the baseline does not allow as ``path:line: message``, and exits with 1 if there are any.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.lint import baseline, cycles, dialect_keys, language, names, sizes
from tests.lint.source import Finding, Source, read_sources

CHECKS = (language.check, names.check, cycles.check, sizes.check, dialect_keys.check)


def find(sources: Sequence[Source]) -> list[Finding]:
    return sorted(finding for check in CHECKS for finding in check(sources))


def report(findings: Sequence[Finding], allowed: Mapping[baseline.Key, int]) -> tuple[list[str], bool]:
    """Return the lines to print, and whether the findings stay within the baseline."""
    found = baseline.count(findings)
    new = baseline.above(found, allowed)
    lines = [str(finding) for finding in findings if (finding.rule, finding.path) in new]
    lines += [f"{file}: {found[rule, file]} × {rule}, baseline {allowed.get((rule, file), 0)}" for rule, file in new]
    if baseline.above(allowed, found):
        lines.append("the baseline can be lowered → python -m tests.lint --write-baseline")
    totals = ", ".join(f"{number} × {rule}" for rule, number in Counter(each.rule for each in findings).items())
    return [*lines, f"{len(findings)} findings ({totals}), {sum(allowed.values())} in the baseline"], not new


def main(arguments: Sequence[str] | None = None, sources: Sequence[Source] = (), file: Path = baseline.PATH) -> int:
    """Run the checks; ``sources`` are the files of the repository unless given, ``file`` is that of the baseline."""
    parser = argparse.ArgumentParser(prog="python -m tests.lint", description="Run the project's own checks.")
    parser.add_argument("prefix", nargs="*", help="with --all: list only paths that begin with it")
    parser.add_argument("--all", action="store_true", help="list what the baseline allows as well")
    parser.add_argument("--write-baseline", action="store_true", help="lower the baseline to the findings of today")
    parser.add_argument("--reset", action="store_true", help="with --write-baseline: also raise it, after files moved")
    options = parser.parse_args(arguments)
    findings = find(sources or read_sources())
    if options.all:
        print(*(each for each in findings if each.path.startswith(tuple(options.prefix) or "")), sep="\n")
        return 0
    reset = options.reset and options.write_baseline
    lines, passed = report(findings, baseline.count(findings) if reset else baseline.read(file))
    if options.write_baseline and passed:
        baseline.write(baseline.count(findings), file)
        lines = [f"wrote {file.name}: {len(findings)} findings"]
    print(*lines, sep="\n", file=sys.stdout if passed else sys.stderr)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
