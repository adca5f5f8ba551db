"""The project's own checks: ``python -m tests.lint``, run by ``make lint``.

Prints each finding as ``path:line: message``, and exits with 1 if there are any.
"""

from __future__ import annotations

import sys

from tests.lint import citations, cycles, dialect_keys, language, names, paths, sizes
from tests.lint.source import read_sources

CHECKS = (
    language.check,
    names.check,
    cycles.check,
    sizes.check,
    dialect_keys.check,
    citations.check,
    paths.check,
)

if __name__ == "__main__":
    sources = read_sources()
    findings = sorted(finding for check in CHECKS for finding in check(sources))
    print(
        *findings,
        f"{len(findings)} findings",
        sep="\n",
        file=sys.stderr if findings else sys.stdout,
    )
    sys.exit(bool(findings))
