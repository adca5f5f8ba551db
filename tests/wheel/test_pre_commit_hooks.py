"""The hooks of ``.pre-commit-hooks.yaml``, run by pre-commit in a repository of playbooks that names ours."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.docs.pages import ROOT

PLAYBOOK: Final = """\
# yaml-language-server: $schema=../schemas/playbook.json
- hosts: all
  database: NEWS
  tasks:
    - asset: {title: Evening News, fields: {comment: Ready}}
"""
_PARTS: Final = (
    "pyproject.toml",
    "README.md",
    "LICENSE",
    ".pre-commit-hooks.yaml",
    "msauto",
    "playbooks",
)
_LOCAL_GIT: Final = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")


class HookedRepository:
    """A repository of playbooks with one of our hooks; the hooks are those of the working tree."""

    def __init__(self, folder: Path, hook: str) -> None:
        self.folder, self._home = folder / "playbooks of a house", folder / "cache"
        ours = folder / "msauto"
        ours.mkdir()
        for part in _PARTS:
            copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
            copy(ROOT / part, ours / part)
        self._commit(ours)
        version = self._run("git", "rev-parse", "HEAD", folder=ours).stdout.strip()
        (self.folder / "playbooks").mkdir(parents=True)
        self.write("playbooks/site.yml", PLAYBOOK)
        self.write(
            ".pre-commit-config.yaml",
            f"repos: [{{repo: '{ours}', rev: {version}, hooks: [{{id: {hook}}}]}}]\n",
        )
        self._commit(self.folder)

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8")

    def hooks(self) -> tuple[int, str]:
        """Run the hooks on all files; return the exit code and the output."""
        self._run("git", "add", "--all", folder=self.folder)
        done = self._run(
            sys.executable,
            "-m",
            "pre_commit",
            "run",
            "--all-files",
            folder=self.folder,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    def _commit(self, folder: Path) -> None:
        self._run("git", "init", "--quiet", folder=folder)
        self._run("git", "add", "--all", folder=folder)
        author = (
            "-c",
            "user.name=x",
            "-c",
            "user.email=x@example.org",
            "-c",
            "commit.gpgsign=false",
        )
        self._run("git", *author, "commit", "--quiet", "--message", "All", folder=folder)

    def _run(
        self, *command: str, folder: Path, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        environment = {
            name: value
            for name, value in os.environ.items()
            if name not in {*_LOCAL_GIT, "PYTHONPATH"}
        }
        environment |= {"PRE_COMMIT_HOME": str(self._home), "NO_COLOR": "1"}
        return subprocess.run(
            command, cwd=folder, env=environment, check=check, capture_output=True, text=True
        )


@pytest.mark.scale
def test_a_playbook_without_its_schema_is_refused(tmp_path: Path) -> None:
    repository = HookedRepository(tmp_path, "msauto-schema-modeline")
    code, output = repository.hooks()
    assert code == 0, output
    repository.write("playbooks/site.yml", PLAYBOOK.partition("\n")[2])
    code, output = repository.hooks()
    assert (code, "playbooks/site.yml" in output) == (1, True), output


@pytest.mark.scale
def test_a_playbook_with_an_error_is_refused(tmp_path: Path) -> None:
    """pre-commit builds msauto in an environment of its own."""
    repository = HookedRepository(tmp_path, "msauto-validate")
    code, output = repository.hooks()
    assert code == 0, output
    repository.write("playbooks/site.yml", PLAYBOOK.replace("comment", "coment"))
    code, output = repository.hooks()
    assert (code, "did you mean 'comment'?" in output) == (1, True), output
