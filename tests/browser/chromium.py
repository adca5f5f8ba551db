"""A Chromium to look at pages with: the one of Playwright, or the one of the system."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

HINT = (
    "make scale installs it where it can: playwright install chromium, or apt-get install chromium"
)
_OF_THE_SYSTEM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def launch(playwright: Any) -> Any:
    """Start Chromium; return ``None`` where it is not installed."""
    own = playwright.chromium.executable_path
    found = (
        own if Path(own).exists() else next(filter(None, map(shutil.which, _OF_THE_SYSTEM)), None)
    )
    sandbox = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    return playwright.chromium.launch(executable_path=found, args=sandbox) if found else None


@contextmanager
def chromium() -> Iterator[Any]:
    """Start Chromium; skips the test, with the reason, where it is not installed."""
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason=f"Playwright is not installed ({HINT})"
    )
    with sync_api.sync_playwright() as playwright:
        browser = launch(playwright)
        if browser is None:
            pytest.skip(f"Chromium is not installed ({HINT})")
        yield browser
        browser.close()
