"""Every example of the documentation runs as its page shows it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from msauto.errors import InputError, SourceLocation
from msauto.playbook.file_kinds import kind_of_file
from msauto.playbook.hosts import ResolveOptions
from msauto.playbook.input_files import Files
from msauto.playbook.validate import validate
from msauto.plugins.batch.batch_file import load_batch
from msauto.plugins.simulator.embedded.seed import state_from_content
from msauto.secrets.commands import SecretCommand, SecretCommands
from tests.docs.pages import PAGES, ROOT, Block, all_blocks, blocks
from tests.docs.session import Session, alike, session, steps

RUNNING = [
    page for page in PAGES if any(block.language in {"console", "python"} for block in blocks(page))
]


def name_of(thing: object) -> str:
    return str(thing.relative_to(ROOT)) if isinstance(thing, Path) else str(thing)


SLOW = {"docs/how-to/test-your-playbooks.md", "docs/how-to/when-a-run-was-interrupted.md"}


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.scale] * (name_of(page) in SLOW)) for page in RUNNING],
    ids=name_of,
)
def test_what_a_page_shows_is_what_its_commands_print(page: Path, tmp_path: Path) -> None:
    found = blocks(page)
    with session(tmp_path.resolve()) as running:
        for block, following in zip(found, [*found[1:], None], strict=True):
            if block.language == "console":
                check_transcript(block, running)
            elif block.language == "python" and not block.file:
                check_python(block, following, running)
            elif block.file:
                running.write(block)


def check_transcript(block: Block, running: Session) -> None:
    found = steps(block.body)
    assert found, f"{block}: a console block without a command"
    for step in found:
        actual = running.run(step)
        told = f"{block}: $ {step.command}\n--- the page says\n{step.expected}\n--- it prints\n{actual}"
        assert alike(step.expected, actual), (
            f"{told}\n(python -m tests.docs.record {block.page.relative_to(ROOT)})"
        )


def check_python(block: Block, following: Block | None, running: Session) -> None:
    printed = running.python(block)
    if following is not None and following.language == "text":
        assert alike(following.body, printed), f"{block}: it prints\n{printed}"
    else:
        assert not printed, f"{block}: prints what the page does not show: {printed}"


@pytest.mark.scale
def test_mypy_accepts_the_test_of_a_user(tmp_path: Path) -> None:
    (block,) = [each for each in all_blocks("python") if each.file == "test_news.py"]
    (tmp_path / "test_news.py").write_text(block.body, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", "cache", "test_news.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


WITHOUT_PLUGINS = [block for block in all_blocks("yaml") if block.page.name != "write-a-plugin.md"]
"""The page of plugins has a test of its own, which installs the plugin (``tests/unit/test_plugins.py``)."""


@pytest.mark.parametrize("block", WITHOUT_PLUGINS, ids=name_of)
def test_every_yaml_example_is_valid_unless_it_is_shown_for_its_errors(
    block: Block, tmp_path: Path
) -> None:
    if block.page.name == "write-a-plugin.md":
        return  # tests/unit/test_plugins.py installs the plugin that the example needs
    path = tmp_path / (block.file or "example.yml")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(block.body, encoding="utf-8")
    (tmp_path / "shows.yml").write_text("episode: Evening News\n", encoding="utf-8")
    for role in (each for each in blocks(block.page) if str(each.file).startswith("roles/")):
        (tmp_path / str(role.file)).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / str(role.file)).write_text(role.body, encoding="utf-8")
    if "jobs:" in block.body and "schedule:" in block.body:
        load_batch(str(path))
        return
    if block.body.startswith("# .pre-commit-config.yaml"):
        ours = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
        shown = yaml.safe_load(block.body)["repos"][0]["hooks"]
        assert [each["id"] for each in shown] == [each["id"] for each in ours]
        return
    if block.file == "studio.yml":
        state_from_content(yaml.safe_load(block.body))
        return
    secrets = dict.fromkeys(
        ("ops", "partner", "vault"), SecretCommand((), "", SourceLocation("msauto.toml"))
    )
    problems = validate([str(path)], ResolveOptions(playbooks=(), secrets=SecretCommands(secrets)))
    is_known = kind_of_file(Files().document(str(path))) != "vars" or re.match(
        "(.*vars|roles)/", str(block.file)
    )
    assert is_known, f"{block}: what is this?"
    wrong = Path(path.name).stem.startswith("wrong")
    assert bool(problems) is wrong, f"{block}: {[str(problem) for problem in problems]}"


def test_an_example_that_is_wrong_would_be_found(tmp_path: Path) -> None:
    path = tmp_path / "made.yml"
    path.write_text(
        "- hosts: all\n  tasks:\n    - asset: {title: A, fields: {coment: x}}\n", encoding="utf-8"
    )
    assert validate([str(path)], ResolveOptions(playbooks=()))
    with pytest.raises(InputError):
        Files().document(str(tmp_path / "not-there.yml"))
