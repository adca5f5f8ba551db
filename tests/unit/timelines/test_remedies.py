"""Each remedy of the errors of files works: it is followed, and the file is read."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from msauto.documents.document import Document, SourceNode
from msauto.errors import InputError
from msauto.model.facts import Facts
from msauto.model.live import Asset
from msauto.playbook.input_files import Files, LookupContext
from msauto.playbook.templates.environment import render_text
from msauto.playbook.templates.names import AssetView, EnvView
from msauto.playbook.variables import TemplateScope, Variables
from tests.tables import table

SPOT = SourceNode(Document("test"))
ASSET = Asset("A", attributes={"frames": "300", "frame_time": "0.0400000000"})


def read(folder: Path, lookup: str, file: str, options: str) -> Any:
    surroundings = LookupContext({}, Files(), folder, folder)
    given = {
        "asset": AssetView(Facts(asset=ASSET)),
        "env": EnvView({}),
        "now": datetime(2026, 11, 20, tzinfo=UTC),
    }
    scope = TemplateScope(Variables(), given, surroundings)
    rest = f", {options}" if options else ""
    return render_text(f"{{{{ lookup('{lookup}', '{file}'{rest}) }}}}", scope, SPOT)


@table("timelines/remedies", "lookup", "file", "text", "encoding", "options", "remedy", "then")
def test_a_remedy_works(
    lookup: str | None,
    file: str,
    text: str,
    encoding: str | None,
    options: str | None,
    remedy: str,
    then: dict[str, str],
    tmp_path: Path,
) -> None:
    (tmp_path / "msauto.toml").touch()
    wrong = {"text": text, "encoding": encoding or "utf-8"}
    wrong["options"] = "rate=25" if options is None else options
    right = {**wrong, **then}
    (tmp_path / file).write_bytes(wrong["text"].encode(wrong["encoding"]))
    kind = lookup or "timeline"
    with pytest.raises(InputError) as caught:
        read(tmp_path, kind, file, wrong["options"])
    (problem,) = caught.value.problems
    assert remedy in problem.remedy
    (tmp_path / file).write_bytes(right["text"].encode(right["encoding"]))
    assert read(tmp_path, kind, file, right["options"]) is not None
