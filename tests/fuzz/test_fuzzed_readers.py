"""Each reader of what others write reads or refuses changed files, in bounded time and memory."""

from __future__ import annotations

import os
import random
import subprocess
import sys

import pytest

from tests.examples import EXPLORE
from tests.fuzz.readers import READERS, ROOT

FILES = 90


@pytest.mark.scale
@pytest.mark.parametrize("name", READERS)
def test_a_changed_file_is_read_or_refused(name: str, request: pytest.FixtureRequest) -> None:
    seed = 1
    if request.config.getoption("hypothesis_profile", None) == EXPLORE:
        seed = random.randrange(10**9)
    command = [sys.executable, "-m", "tests.fuzz", name, str(seed), str(FILES)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}{done.stderr[-3000:]}"
