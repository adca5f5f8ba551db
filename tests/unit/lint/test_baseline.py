"""The baseline may only shrink, and the checks find something in the files of today."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.lint import __main__ as lint
from tests.lint import baseline
from tests.lint.source import Finding, Source

ONE = Finding("docs/x.md", 3, "word", "avoid 'told'")
TWO = Finding("docs/x.md", 7, "word", "avoid 'wish'")
KEY = ("word", "docs/x.md")


def test_every_check_runs() -> None:
    code = f'''"""The the told, {"long " * 40}"""
import msauto.utils
class Dialect:
    key: int
class Dialect: ...
def f():
'''
    code += "    pass\n" * 60
    folder = [Source(f"msauto/m{number}.py", "") for number in range(20)]
    found = lint.find([*folder, Source("msauto/utils.py", code)])
    rules = {"word", "doubled word", "sentence", "class name", "module name", "import cycle", "folder size"}
    assert {each.rule for each in found} == rules | {"function length", "dialect key"}


def test_findings_within_the_baseline() -> None:
    assert lint.report([ONE, TWO], {KEY: 2}) == (["2 findings (2 × word), 2 in the baseline"], True)


@pytest.mark.parametrize("other", [("word", "docs/y.md"), ("sentence", "docs/x.md")])
def test_another_file_or_rule_allows_nothing(other: tuple[str, str]) -> None:
    printed, passed = lint.report([ONE, TWO], {KEY: 1, other: 5})
    assert printed[:3] == [str(ONE), str(TWO), "docs/x.md: 2 × word, baseline 1"]
    assert not passed


def test_a_baseline_that_can_be_lowered() -> None:
    printed, passed = lint.report([ONE], {KEY: 2})
    assert passed
    assert "the baseline can be lowered" in printed[0]


def test_the_file_of_the_baseline(tmp_path: Path) -> None:
    counts = Counter({KEY: 2, ("sentence", "docs/x.md"): 1})
    baseline.write(counts, tmp_path / "baseline.json")
    assert baseline.read(tmp_path / "baseline.json") == counts


def run(file: Path, text: str, *arguments: str) -> int:
    return lint.main(arguments, [Source("msauto/d.py", f'"""{text}"""\nclass Dialect: ...\n')], file)


def test_the_baseline_is_lowered_and_never_raised(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "baseline.json"
    assert run(file, "Told, told.", "--write-baseline", "--reset") == 0
    assert run(file, "Told.") == 0
    assert run(file, "Told.", "--write-baseline") == 0
    assert run(file, "Told, told.", "--write-baseline") == 1
    assert run(file, "Told, told.") == 1
    assert capsys.readouterr().err.count("msauto/d.py:1: avoid 'told'") == 2
    assert baseline.read(file) == {("word", "msauto/d.py"): 1}


def test_all_findings_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "baseline.json"
    assert run(file, "Told.", "--all", "msauto/") == 0
    assert "avoid 'Told'" in capsys.readouterr().out
    assert run(file, "Told.", "--all", "docs/") == 0
    assert "avoid 'Told'" not in capsys.readouterr().out
