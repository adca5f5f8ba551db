"""One reader with many changed files, in a process with little memory: ``python -m tests.fuzz READER SEED COUNT``.

Each file has a limit of processor time. What a reader neither reads nor refuses by its own errors is kept in
``build/fuzz``, and makes a case of it.
"""

from __future__ import annotations

import random
import resource
import signal
import sys
import traceback
from pathlib import Path
from types import FrameType
from typing import Final

from tests.fuzz.mutations import mutated
from tests.fuzz.readers import READERS

MEMORY: Final = 2 * 2**30
SECONDS: Final = 10.0
KEPT: Final = Path("build/fuzz")


class TooSlowError(BaseException):
    """A reader took more processor time than a file may."""


def out_of_time(_signal: int, _frame: FrameType | None) -> None:
    """End a reader that takes too long."""
    raise TooSlowError(f"more than {SECONDS:.0f} s")


def main(name: str, seed: int, count: int) -> int:
    """Read so many changed files; return how many were neither read nor refused."""
    reader = READERS[name]
    files = [path.read_bytes() for path in sorted(reader.files)]
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGPROF, out_of_time)
    found = 0
    for number in range(count):
        chance = random.Random(f"{name} {seed} {number}")
        data = mutated(chance.choice(files), chance)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            reader.read(data)
        except reader.errors:
            pass
        except BaseException as error:  # noqa: BLE001 - this is what is looked for
            found += 1
            KEPT.mkdir(parents=True, exist_ok=True)
            path = KEPT / f"{name}-{seed}-{number}"
            path.write_bytes(data)
            last = traceback.extract_tb(error.__traceback__)[-1]
            print(
                f"{path}: {type(error).__name__}: {str(error)[:200]} ({last.filename}:{last.lineno})"
            )
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    print(f"{name}: {count} files, {found} neither read nor refused")
    return found


if __name__ == "__main__":
    sys.exit(min(1, main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
