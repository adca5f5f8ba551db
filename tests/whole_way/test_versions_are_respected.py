"""The stories of versions (``tests/cases/stories/versions.yml``) have a task for every feature, and the page its
version.
"""

from __future__ import annotations

import re

import yaml

from msauto.model.fields import LINK_FIELDS
from msauto.model.requests import Feature, show_version
from tests.tables import CASES


def test_every_feature_has_a_task() -> None:
    first, *_ = yaml.safe_load((CASES / "stories/versions.yml").read_text(encoding="utf-8"))[
        "stories"
    ]
    tried = {row["feature"]: row["since"] for row in first["each"]}
    assert tried == {
        each.name: show_version(each.since) for each in Feature if each is not Feature.FOLDERLIST
    }


def test_the_page_names_the_versions_of_the_table() -> None:
    page = (CASES.parents[1] / "docs" / "reference" / "interface.md").read_text(encoding="utf-8")
    told = page.partition("## Versions")[2].partition("\n## ")[0]
    assert set(re.findall(r"\d+\.\d+\.\d+", told)) == {
        show_version(each.since) for each in (*Feature, *LINK_FIELDS) if each.since
    }
