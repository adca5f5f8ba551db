"""Writes the pages of the reference that are made from the code: ``python -m tests.docs.make_reference``."""

from __future__ import annotations

from msauto.playbook.reference.pages import PAGES, render_page
from tests.docs.pages import ROOT

if __name__ == "__main__":
    for name in PAGES:
        (ROOT / "docs" / "reference" / f"{name}.md").write_text(render_page(name), encoding="utf-8")
