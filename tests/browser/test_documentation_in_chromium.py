"""The built documentation in Chromium, from files: its search works, it loads nothing else, it fits a phone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.chromium import chromium
from tests.docs.pages import ROOT

SITE = ROOT / "build" / "html"
pytestmark = [
    pytest.mark.scale,
    pytest.mark.xdist_group("documentation"),
    pytest.mark.skipif(not (SITE / "index.html").is_file(), reason="make docs builds the documentation"),
]
PAGES = ("index", "tutorial", "how-to/troubleshooting", "how-to/coming-from-ansible-or-terraform", "reference/commands")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_a_phone_and_loads_only_files(browser: Any, name: str, scheme: str) -> None:
    page = browser.new_page(viewport={"width": 400, "height": 800}, color_scheme=scheme)
    loaded: list[str] = []
    page.on("request", lambda request: loaded.append(request.url))
    page.goto((SITE / f"{name}.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert [url for url in loaded if not url.startswith(("file:", "data:"))] == []
    page.close()


def test_the_search_works_from_files(browser: Any) -> None:
    page = browser.new_page()
    page.goto(f"{(SITE / 'search.html').as_uri()}?q=wheelhouse")
    page.get_by_role("link", name="Install offline").last.wait_for()
    assert "found one page" in page.locator(".search-summary").inner_text()
    page.close()
