"""An empty cell of a table identifies nothing and shows nothing: the error names its row."""

from __future__ import annotations

from pathlib import Path

from msauto.playbook.hosts import ResolveOptions
from msauto.playbook.validate import validate
from tests.tables import table

INVENTORY = """
all:
  vars: {database: D, parts: "{{ lookup('csv', 'rows.csv') }}"}
  hosts: {h: {server: {url: http://h}}}
"""


@table("playbook/empty_cells", "task", "rows", "expected")
def test_the_row_is_named(task: str, rows: str | None, expected: list[str], tmp_path: Path) -> None:
    play = f"- hosts: all\n  tasks:\n    - {task}\n"
    for name, text in {"i.yml": INVENTORY, "p.yml": play, "rows.csv": rows or ""}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    options = ResolveOptions((), (str(tmp_path / "i.yml"),), env={})
    found = []
    for problem in validate([str(tmp_path / "p.yml")], options):
        text = f"{problem.place}: {problem.message}"
        found.append(text.replace(f"{tmp_path}/", ""))
    assert found == expected
