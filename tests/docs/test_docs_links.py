"""Links lead somewhere, every page is on the map, and nothing of a machine is in any page."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.pages import PAGES, ROOT, anchors, blocks, links


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in links(page):
            if re.match(r"https?:", target):
                continue
            name, _, anchor = target.partition("#")
            found = (page.parent / name).resolve() if name else page
            assert found.exists(), (page, target)
            assert not anchor or anchor in anchors(found), (page, target)


def test_a_broken_link_would_be_found(tmp_path: Path) -> None:
    made = tmp_path / "made.md"
    made.write_text("# A title: with signs\n[x](nowhere.md) `[y](z)`\n", encoding="utf-8")
    assert "nowhere.md" in list(links(made))
    assert anchors(made) == {"a-title-with-signs"}


def test_every_page_is_on_the_map() -> None:
    index = ROOT / "docs" / "index.md"
    there = {page for page in PAGES if page.is_relative_to(ROOT / "docs")} - {index}
    assert not there - {(index.parent / target).resolve() for target in links(index)}


def test_nothing_of_a_machine_is_in_a_page() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"/work/|/root/|/tmp/|/opt/|pypi", text), page


def test_the_readme_begins_with_the_two_commands_and_names_what_ci_runs() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    first = re.search(r"(?ms)^```sh\n(.*?)^```$", readme)
    assert first
    assert [line.split("#")[0].strip() for line in first[1].splitlines()] == [
        "make demo",
        "make test",
    ]
    runs = re.search(r'step "tests"\n(.+)', (ROOT / ".ci" / "run").read_text(encoding="utf-8"))
    assert runs
    assert runs[1] == "make test"


def test_the_template_for_a_server_is_the_form_of_the_page() -> None:
    (form,) = (
        block.body
        for block in blocks(ROOT / "docs/how-to/another-server.md")
        if block.language == "markdown"
    )
    assert (
        (ROOT / ".github/ISSUE_TEMPLATE/server.md")
        .read_text(encoding="utf-8")
        .endswith(f"\n{form}")
    )
