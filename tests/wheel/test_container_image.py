"""The ``Containerfile``: linted, as the CronJob needs it, and its steps run where no builder is available."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path
from typing import Final

import pytest

from msauto.version import __version__
from tests.docs.pages import ROOT
from tests.wheel.test_wheel import run

TEXT: Final = (ROOT / "Containerfile").read_text(encoding="utf-8")
INSTRUCTIONS: Final = re.findall(
    r"^([A-Z]+) (.*)$",
    re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", TEXT, flags=re.MULTILINE)),
    re.MULTILINE,
)
LOCK: Final = (ROOT / "image.lock.txt").read_text(encoding="utf-8")
CRON_JOB: Final = (ROOT / "msauto/plugins/batch/scheduler_files/kubernetes.yaml.j2").read_text(
    encoding="utf-8"
)


def test_it_is_the_image_of_the_cron_job() -> None:
    (image,) = re.findall(r'image: {{ "(\S+):" ~ version }}', CRON_JOB)
    assert f"podman build --tag {image}:{__version__} ." in TEXT
    user, group = re.findall(r"runAs(?:User|Group): (\d+)", CRON_JOB)
    assert ("USER", f"{user}:{group}") in INSTRUCTIONS
    assert ("WORKDIR", re.findall(r"workingDir: (\S+)", CRON_JOB)[0]) in INSTRUCTIONS
    assert "{name: XDG_STATE_HOME, value: /state}" in CRON_JOB
    assert "XDG_STATE_HOME=/state" in TEXT


def test_it_has_all_extras() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    locked = set(re.findall(r"^([a-z0-9-]+)==", LOCK, re.MULTILINE))
    named = {re.split(r"[\[<>=~; ]", each)[0] for each in chain.from_iterable(extras.values())}
    assert named <= locked


def test_what_it_installs_is_named_by_digests() -> None:
    """What was built once is built again: no tag, no version range, and no place to load from but the index in use."""
    bases = [rest for word, rest in INSTRUCTIONS if word == "FROM"]
    assert len({base.split()[0] for base in bases}) == 1
    assert all(re.search(r":3\.\d+-slim@sha256:[0-9a-f]{64}\b", base) for base in bases)
    entries = re.split(r"^(?=[a-z])", LOCK, flags=re.MULTILINE)[1:]
    assert len(entries) > 30
    assert all(
        re.match(r"[a-z0-9-]+==\S+ \\\n +--hash=sha256:[0-9a-f]{64}", entry) for entry in entries
    )
    assert "://" not in LOCK
    (steps,) = (rest for word, rest in INSTRUCTIONS if word == "RUN")
    assert "--require-hashes --only-binary=:all: -r image.lock.txt" in steps
    assert "--no-deps --no-build-isolation ." in steps


def test_the_builder_receives_what_is_copied() -> None:
    copied = {
        name
        for word, rest in INSTRUCTIONS
        if word == "COPY" and "--from" not in rest
        for name in rest.split()[:-1]
    }
    sent = {
        line[1:]
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    assert copied == sent


@pytest.mark.scale
def test_it_has_no_findings() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    if not hadolint.exists():
        pytest.skip("hadolint is not installed: it has no wheel for this machine")
    done = subprocess.run([hadolint, ROOT / "Containerfile"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.scale
def test_its_steps_install_msauto_with_all_extras(tmp_path: Path) -> None:
    """The steps of the first stage, in folders: no builder is needed, and only what is copied is there."""
    (version,) = set(re.findall(r"python:(3\.\d+)-slim", TEXT))
    python = shutil.which(f"python{version}")
    if (
        python is None
        or subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode
    ):
        pytest.skip(
            f"the image has Python {version}, for which its libraries are locked, and it is not installed here"
        )
    source, target = tmp_path / "source", tmp_path / "opt"
    source.mkdir()
    for name in (
        name
        for word, rest in INSTRUCTIONS
        if word == "COPY" and "--from" not in rest
        for name in rest.split()[:-1]
    ):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    (steps,) = (rest for word, rest in INSTRUCTIONS if word == "RUN")
    command = steps.replace("/opt/msauto", str(target)).replace(
        "python -m venv", f"{shlex.quote(python)} -m venv"
    )
    run("sh", "-c", command, folder=source)
    assert (
        run(target / "bin/msauto", "--version", folder=tmp_path)
        == f"msauto, version {__version__}\n"
    )
    modules = "apprise, distributed, keyring, psycopg, python_calamine"
    run(target / "bin/python", "-c", f"import {modules}", folder=tmp_path)
