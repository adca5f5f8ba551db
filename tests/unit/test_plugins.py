"""Plugins: one of another package, made from the page that explains it; and the kernel alone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from socket import AF_INET, SOCK_DGRAM
from socket import socket as new_socket

import pytest

import msauto
from msauto import sockets
from msauto.errors import MsautoError
from msauto.simulator import Simulator
from tests.docs.pages import ROOT, blocks

PAGE = ROOT / "docs/how-to/write-a-plugin.md"
FIELD = "- hosts: all\n  database: NEWS\n  tasks: [{asset: {title: Long Film, fields: {comment: Checked}}}]\n"
ENTRY_POINTS = "[msauto.plugins]\ndesk = msauto_desk:PLUGIN\n"
SHARED = 'state.url = "postgresql://msauto@localhost/msauto"'
METADATA = "Metadata-Version: 2.1\nName: msauto-desk\nVersion: 1.0\n"


def run(folder: Path, *args: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, with one more folder of packages."""
    home = {name: str(folder) for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME")}
    packages = [str(folder)] if path is None else [str(path)]
    environment = {**os.environ, **home, "PYTHONPATH": os.pathsep.join(packages), "NO_COLOR": "1"}
    command = [sys.executable, "-m", "msauto", *args]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A folder with the plugin of the page, as an installed package, and the playbook that uses it."""
    for block in blocks(PAGE):
        if block.file:
            path = tmp_path / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.body, encoding="utf-8")
    installed = tmp_path / "msauto_desk-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text(METADATA, encoding="utf-8")
    (installed / "entry_points.txt").write_text(ENTRY_POINTS, encoding="utf-8")
    (tmp_path / "rundown.txt").write_text("Long Film\n", encoding="utf-8")
    return tmp_path


def test_the_page_names_its_entry_point() -> None:
    project = next(block for block in blocks(PAGE) if block.file == "pyproject.toml")
    assert 'desk = "msauto_desk:PLUGIN"' in project.body


@pytest.mark.scale
def test_a_filter_a_lookup_a_report_form_and_a_command_of_another_package(desk: Path) -> None:
    with Simulator() as server:
        planned = run(desk, "plan", "tonight.yml", "--server", server.url, "--format", "lines")
        applied = run(
            desk, "apply", "tonight.yml", "--server", server.url, "--format", "lines", "-y"
        )
        clip = server.state.clip("Long Film").home
    assert planned.stdout == "Long Film: 1 to do\n", planned.stderr
    assert applied.stdout.endswith("Long Film: changed\n"), applied.stderr
    assert clip.fields["comment"] == "NEWS 007"
    assert run(desk, "desk").stdout == "The desk is ready.\n"


@pytest.mark.scale
def test_what_came_of_targets_goes_to_a_syslog_server(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        Simulator() as server,
        new_socket(AF_INET, SOCK_DGRAM) as syslog,
    ):
        syslog.bind(("127.0.0.1", 0))
        syslog.settimeout(30)
        monkeypatch.setenv("SYSLOG", f"127.0.0.1:{syslog.getsockname()[1]}")
        here = ("--server", server.url)
        server.faults.add("status:500@POST")
        assert run(desk, "apply", "tonight.yml", *here, "-y", "--format", "syslog").returncode == 3
        failed = syslog.recv(2048).decode()
        server.faults.clear()
        assert run(desk, "apply", "tonight.yml", *here, "-y").returncode == 0
        told = run(desk, "report", "last", "--format", "syslog")
        changed = syslog.recv(2048).decode()
    form = r"<(\d+)>1 \S+T\S+Z \S+ msauto - \d{8}T\d{6}Z-[0-9a-f]{4} - (.*)"
    assert re.fullmatch(form, failed)[2].endswith(" Long Film: failed")  # type: ignore[index]
    priority, text = re.fullmatch(form, changed).groups()  # type: ignore[union-attr]
    assert failed.startswith("<131>")
    assert priority == "133"
    assert text.endswith(" Long Film: changed")
    assert told.stdout == f"{changed}\n"


@pytest.mark.scale
def test_what_nobody_brings_is_an_error_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "tonight.yml").write_text(FIELD, encoding="utf-8")
    unknown = [
        run(tmp_path, "plan", "tonight.yml", "--server", "127.0.0.1:1", "--format", "lines"),
        run(tmp_path, "plan", "tonight.yml", "--server", "127.0.0.1:1", "--on", "slurm://head:1"),
        run(tmp_path, "desk"),
    ]
    for failed in unknown:
        assert failed.returncode == 1
        assert "itself failed" not in failed.stderr
    assert "'slurm' not found" in unknown[1].stderr


def test_a_broken_plugin_is_named(desk: Path) -> None:
    (desk / "msauto_desk/__init__.py").write_text("1 / 0\n", encoding="utf-8")
    failed = run(desk, "desk")
    assert failed.returncode == 1
    assert "the plugin desk cannot be loaded: ZeroDivisionError" in failed.stderr
    assert "→ repair it, or uninstall its package" in failed.stderr


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of msauto without its plugins but the embedded server."""
    folder = tmp_path_factory.mktemp("kernel")
    whole = Path(msauto.__file__).parent
    shutil.copytree(whole, folder / "msauto")  # with its bytecode, so that it need not be compiled
    for plugin in sockets.our_plugins():
        if plugin.name != "simulator":
            shutil.rmtree(folder / "msauto/plugins" / plugin.name)
    return folder


@pytest.mark.scale
def test_the_kernel_works_without_plugins(kernel: Path, tmp_path: Path) -> None:
    (tmp_path / "field.yml").write_text(FIELD, encoding="utf-8")
    with Simulator() as server:
        here = ("--server", server.url)
        for command in (
            ("validate", "."),
            ("plan", "field.yml", *here),
            ("apply", "field.yml", *here, "-y"),
            ("history",),
            ("report", "last"),
            ("export", "--title", "Long Film", "-d", "NEWS", *here),
        ):
            done = run(tmp_path, *command, path=kernel)
            assert done.returncode == 0, (command, done.stdout, done.stderr)
        assert server.state.clip("Long Film").home.fields["comment"] == "Checked"
        undone = run(tmp_path, "undo", "last", *here, "-y", path=kernel)
        assert undone.returncode == 0, undone.stderr
        assert not server.state.clip("Long Film").home.fields.get("comment")


@pytest.mark.scale
@pytest.mark.parametrize(
    ("args", "plugin"),
    [
        (("batch", "run", "batch.yml"), "batch"),
        (("probe",), "probe"),
        (("plan", "field.yml", "--format", "html"), "pages"),
        (("plan", "field.yml", "--server", "127.0.0.1:1", "--on", "dask://head:8786"), "dask"),
        (("history", "--config", "msauto.toml"), "postgres"),
        (
            ("export", "--format", "edl", "--title", "Long Film", "--server", "127.0.0.1:1"),
            "timelines",
        ),
    ],
)
def test_what_a_missing_plugin_would_bring_names_it(
    kernel: Path, tmp_path: Path, args: tuple[str, ...], plugin: str
) -> None:
    (tmp_path / "field.yml").write_text(FIELD, encoding="utf-8")
    (tmp_path / "msauto.toml").write_text(SHARED if plugin == "postgres" else "", encoding="utf-8")
    failed = run(tmp_path, *args, path=kernel)
    assert failed.returncode == 1
    assert f"the plugin {plugin} of msauto" in failed.stderr


def test_a_name_of_ours_is_found_without_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sockets, "other_plugins", lambda: pytest.fail("other plugins were looked up")
    )
    assert sockets.place_of("report_forms", "html") == "msauto.plugins.pages.html"
    with pytest.raises(pytest.fail.Exception):
        sockets.place_of("report_forms", "lines")


def test_every_place_of_ours_exists() -> None:
    for plugin in sockets.our_plugins():
        for socket in sockets.SOCKETS:
            for brought in getattr(plugin, socket).values():
                place = brought.place if isinstance(brought, sockets.PluginCommand) else brought
                assert sockets.load_place(place) is not None


def test_an_unknown_name_has_a_remedy() -> None:
    with pytest.raises(MsautoError, match="form of a report 'htm' not found") as caught:
        sockets.find("report_forms", "htm")
    assert "did you mean 'html'?" in caught.value.remedy
