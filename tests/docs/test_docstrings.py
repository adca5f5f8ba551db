"""The examples in the docstrings of the public names run, in the order of a first use."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

import msauto
from msauto.plugins.simulator.embedded import Simulator

PLAYBOOK = """\
- name: Tonight's news
  hosts: all
  database: NEWS
  tasks:
    - asset:
        title: Long Film
        fields: {comment: "Season {{ season }}"}
        markers: [{at: "00:00:10:00", track: Cue Point, title: Ad break}]
"""
ORDER = ("load", "plan", "rehearse", "apply", "undo", "export", "history", "MediaServer")


def test_examples_of_docstrings_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    names = {name: getattr(msauto, name) for name in msauto.__all__} | {"msauto": msauto}
    with Simulator() as studio:
        Path("news.yml").write_text(PLAYBOOK)
        Path("inventory.yml").write_text(
            f'all: {{hosts: {{studio-a: {{server: {{url: "{studio.url}"}}}}}}}}\n'
        )
        runner, parser = (
            doctest.DocTestRunner(optionflags=doctest.ELLIPSIS),
            doctest.DocTestParser(),
        )
        for name in ORDER:
            text = str(getattr(msauto, name).__doc__).replace("http://studio-a:7901", studio.url)
            test = parser.get_doctest(text, names, name, None, None)
            assert test.examples, name
            runner.run(test, clear_globs=False)
            names.update(test.globs)
    assert not runner.failures


def test_every_example_of_a_public_name_is_run() -> None:
    shown = {name for name in msauto.__all__ if ">>>" in str(getattr(msauto, name).__doc__)}
    assert shown == set(ORDER)
