"""``msauto init``: what it makes validates, plans, and never overwrites anything."""

from __future__ import annotations

import compileall
import json
import re
import shutil
import subprocess
import sys
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pytest
import yaml

from msauto.cli.commands.init import repository
from msauto.playbook.settings import load_settings
from msauto.plugins.simulator.embedded import Simulator
from tests.cli.command_line import Desk
from tests.docs.pages import ROOT

FILES = {
    ".github/workflows/msauto.yml",
    ".gitignore",
    ".gitlab-ci.yml",
    ".pre-commit-config.yaml",
    "README.md",
    "batch.yml",
    "ci/post_plan.py",
    "group_vars/all.yml",
    "inventory.yml",
    "msauto.toml",
    "playbooks/site.yml",
    "prometheus-rules.yml",
    ".vscode/settings.json",
    *(
        f"schemas/{name}.json"
        for name in ("batch", "handlers", "inventory", "playbook", "settings", "tasks")
    ),
}


def test_bytecode_of_an_installation_is_not_part_of_a_repository() -> None:
    """Pip compiles what it installs, also what a new repository gets."""
    compileall.compile_dir(ROOT / "msauto" / "cli" / "skeleton", quiet=1)
    names = [name for name, _ in repository()]
    assert sorted(names) == sorted(FILES)


@pytest.fixture(scope="module")
def _made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("init")
    assert Desk(folder).run("init", "repo").code == 0
    return folder / "repo"


@pytest.fixture
def new(desk: Desk, sim: Simulator, _made_once: Path) -> Desk:
    """A desk in a repository just made."""
    shutil.copytree(_made_once, desk.folder / "repo")
    made = Desk.__new__(Desk)
    made.folder, made.url, made.environment = (
        desk.folder / "repo",
        sim.url,
        {"STUDIO_A_URL": sim.url},
    )
    return made


def test_it_makes_the_files_and_lists_them(desk: Desk) -> None:
    sourced = desk.run("init", "my repo")
    assert sourced.code == 0
    assert set(sourced.out.splitlines()) == {f"my repo/{name}" for name in FILES}
    assert "cd 'my repo'" in sourced.err
    assert {name for name in desk.files() if name.startswith("my repo/")} == {
        f"my repo/{name}" for name in FILES
    }


def test_an_editor_finds_each_schema_that_its_settings_map(new: Desk) -> None:
    settings = json.loads((new.folder / ".vscode/settings.json").read_text("utf-8"))
    mapped = {*settings["yaml.schemas"], *settings["evenBetterToml.schema.associations"].values()}
    assert len(mapped) == 6
    for path in mapped:
        schema = json.loads((new.folder / path).read_text("utf-8"))
        assert schema["$schema"]


def test_everything_validates(new: Desk) -> None:
    sourced = new.run("validate", ".")
    assert (sourced.code, sourced.err) == (0, "No errors found.\n"), sourced.out
    settings = load_settings(None, new.folder)
    assert settings.inventories
    assert settings.limits.protected == ("Master/*",)


def test_it_plans_against_the_simulator_and_applies(new: Desk) -> None:
    planned = new.run("plan", "playbooks/site.yml", "--detailed-exitcode")
    assert planned.code == 2, planned.err
    assert "user_0" in planned.out
    assert new.run("apply", "playbooks/site.yml", "--yes").code == 0
    assert new.run("plan", "playbooks/site.yml", "--detailed-exitcode").code == 0


def test_a_folder_that_is_not_empty_is_refused(desk: Desk) -> None:
    desk.write("repo/README.md", "mine")
    sourced = desk.run("init", "repo")
    assert sourced.code == 4
    sourced.one_error("repo is not empty", "--force")
    assert [name for name in desk.files() if name.startswith("repo/")] == ["repo/README.md"]


def test_force_adds_and_overwrites_nothing(desk: Desk) -> None:
    desk.write("repo/README.md", "mine")
    sourced = desk.run("init", "repo", "--force")
    assert sourced.code == 0
    assert (desk.folder / "repo/README.md").read_text() == "mine"
    assert "Unchanged: repo/README.md" in sourced.err
    assert "README.md" not in sourced.out
    assert {
        name.removeprefix("repo/") for name in desk.files() if name.startswith("repo/")
    } == FILES
    again = desk.run("init", "repo", "--force")
    assert (again.code, again.out) == (0, "")


def test_it_fills_the_working_folder(desk: Desk) -> None:
    for name in desk.files():
        (desk.folder / name).unlink()
    subprocess.run(["git", "init", "--quiet"], cwd=desk.folder, check=True)
    sourced = desk.run("init")
    assert (sourced.code, set(sourced.out.splitlines())) == (0, FILES)
    assert "cd " not in sourced.err
    desk.run("init").one_error("the working folder is not empty", "--force")


def test_what_the_documentation_saves_is_ignored_by_git(new: Desk) -> None:
    """An export is a record to keep; all else that the commands of the docs and the skeleton write is not."""
    pages = [page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs").rglob("*.md"))]
    text = "\n".join([*pages, *(data.decode("utf-8") for _, data in repository())])
    written = re.findall(
        r"msauto (?:plan|apply|report|validate|schedule|undo) [^`|\n]*?(?:--out|--events|>) +([\w./-]+)",
        text,
    )
    names = {
        *written,
        *re.findall(r"reports: {dir: (\w+)", text),
        *re.findall(r"plan: (\w+\.plan\.json)", text),
    } - {"DIR"}
    assert {
        "plan.html",
        "run.html",
        "plan.md",
        "run.jsonl",
        "tonight.plan.json",
        "units",
        "reports",
    } <= names
    subprocess.run(["git", "init", "--quiet"], cwd=new.folder, check=True)
    paths = [name if "." in name else f"{name}/x" for name in sorted(names)]
    found = subprocess.run(
        ["git", "check-ignore", *paths], cwd=new.folder, capture_output=True, text=True
    )
    assert found.stdout.split() == paths
    kept = subprocess.run(
        ["git", "check-ignore", *FILES, "exported/x.yml"], cwd=new.folder, capture_output=True
    )
    assert not kept.stdout


def test_a_file_in_the_way_is_one_error(desk: Desk) -> None:
    desk.write("repo/playbooks", "a file")
    sourced = desk.run("init", "repo", "--force")
    assert sourced.code == 1
    sourced.one_error("cannot write repo/playbooks")


# CI files ------------------------------------------------------------------------------------------------------------


def contents() -> dict[str, Any]:
    return {
        name: yaml.safe_load(data)
        for name, data in repository()
        if name.endswith((".yml", ".yaml"))
    }


@pytest.mark.scale
def test_the_commands_in_ci_are_commands_that_run(new: Desk) -> None:
    files = contents()
    github = files[".github/workflows/msauto.yml"]["jobs"]
    steps = [step["run"] for job in github.values() for step in job["steps"] if "run" in step]
    gitlab = files[".gitlab-ci.yml"]
    steps += [line for job in ("validate", "plan") for line in gitlab[job]["script"]] + gitlab[
        "plan"
    ]["after_script"]
    steps += [hook["entry"] for hook in files[".pre-commit-config.yaml"]["repos"][0]["hooks"]]
    ours = {step.partition(" > ")[0] for step in steps if step.startswith("msauto ")}
    assert ours == {
        "msauto validate .",
        "msauto batch check batch.yml",
        "msauto plan playbooks/site.yml --format markdown",
        "msauto plan playbooks/site.yml --format html",
    }
    for step in ours:
        sourced = new.run(*step.split()[1:])
        assert sourced.code == 0, sourced.err
    plan = new.run("plan", "playbooks/site.yml", "--format", "markdown").out
    assert plan.startswith("<!-- msauto:plan:site v1 plan=")


def test_nothing_is_installed_by_the_name_that_is_another_projects(tmp_path: Path) -> None:
    """The package index has another project of our name: the repository names no source to install msauto from."""
    text = "\n".join(data.decode("utf-8") for _, data in repository())
    assert "project/msauto" not in text
    installs = re.findall(r"pip install (?:--quiet )?(.*)", text)
    ours = [line for line in installs if "pre-commit" not in line]
    assert len(ours) == 3
    for line in ours:
        sourced = subprocess.run(
            ["sh", "-c", f"echo {line}"],
            env={"MSAUTO_PACKAGE": "./msauto.whl"},
            capture_output=True,
        )
        assert sourced.stdout == b"./msauto.whl\n"
        nobody = subprocess.run(["sh", "-c", f"echo {line}"], env={}, capture_output=True)
        assert nobody.returncode
        assert b"MSAUTO_PACKAGE" in nobody.stderr


def test_every_action_and_image_of_ci_is_named_by_its_digest() -> None:
    files = contents()
    jobs = files[".github/workflows/msauto.yml"]["jobs"].values()
    used = [step["uses"] for job in jobs for step in job["steps"] if "uses" in step]
    assert len(used) == 7
    assert all(re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", each) for each in used)
    assert re.fullmatch(r"\S+@sha256:[0-9a-f]{64}", files[".gitlab-ci.yml"]["default"]["image"])


def test_what_a_change_request_changes_runs_without_a_token() -> None:
    files = contents()
    workflow = files[".github/workflows/msauto.yml"]
    assert workflow["permissions"] == {}
    for name, job in workflow["jobs"].items():
        checkouts = [
            step["with"]
            for step in job["steps"]
            if step.get("uses", "").startswith("actions/checkout@")
        ]
        assert [each["persist-credentials"] for each in checkouts] == [False]
        is_last = name == "comment"
        assert ("pull-requests" in job["permissions"]) == is_last
        assert ("token" in str(job)) == is_last
        assert ("secrets." in str(job)) == (name == "plan")
        assert ("base.sha" in str(checkouts)) == is_last
        assert "env" not in job
    gitlab = files[".gitlab-ci.yml"]
    assert [
        name for name in ("validate", "plan", "comment") if "MSAUTO_TOKEN" in str(gitlab[name])
    ] == ["comment"]
    assert "FETCH_HEAD:ci/post_plan.py" in str(gitlab["comment"])


def test_a_fork_never_plans() -> None:
    job = contents()[".github/workflows/msauto.yml"]["jobs"]["plan"]
    assert "head.repo.full_name == github.repository" in job["if"]


class _Forge(BaseHTTPRequestHandler):
    """The comments of a pull request of GitHub, or the notes of a merge request of GitLab, two pages at first."""

    comments: ClassVar[list[dict[str, Any]]] = []
    writes: ClassVar[list[tuple[str, str]]] = []
    tokens: ClassVar[set[str | None]] = set()

    def do_GET(self) -> None:
        page = int(
            urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query).get("page", ["1"])[0]
        )
        self._answer(
            {"id": 7}
            if self.path.endswith("/user")
            else self.comments[100 * (page - 1) : 100 * page]
        )

    def do_POST(self) -> None:
        self.comments.append(comment(len(self.comments), self._body()))
        self._answer({})

    def do_PUT(self) -> None:
        number = int(self.path.rpartition("/")[2])
        self.comments[number]["body"] = self._body()
        self._answer({})

    def do_PATCH(self) -> None:
        self.do_PUT()

    def _body(self) -> str:
        self.writes.append((self.command, self.path))
        body: str = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"]
        return body

    def _answer(self, value: Any) -> None:
        self.tokens.add(self.headers["PRIVATE-TOKEN"] or self.headers["Authorization"])
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments: object) -> None:
        pass


def comment(number: int, body: str, ours: bool = True) -> dict[str, Any]:
    author = {"user": {"type": "Bot" if ours else "User"}, "author": {"id": 7 if ours else 8}}
    return {"id": number, "body": body, **author}


MARKER = "<!-- msauto:plan:site v1 "
GITHUB = {
    "GITHUB_API_URL": "URL",
    "GITHUB_REPOSITORY": "house/news",
    "GITHUB_TOKEN": "t",
    "PULL_REQUEST": "12",
}
GITLAB = {
    "CI_API_V4_URL": "URL/api/v4",
    "CI_PROJECT_ID": "3",
    "CI_MERGE_REQUEST_IID": "12",
    "MSAUTO_TOKEN": "t",
}


@pytest.mark.scale
@pytest.mark.parametrize(
    ("environment", "path", "update", "token"),
    [
        (GITHUB, "/repos/house/news/issues/{}comments", "PATCH", "Bearer t"),
        (GITLAB, "/api/v4/projects/3/merge_requests/12/notes", "PUT", "t"),
    ],
    ids=["github", "gitlab"],
)
def test_one_comment_always_has_the_latest_plan(
    tmp_path: Path, environment: dict[str, str], path: str, update: str, token: str
) -> None:
    (tmp_path / "post_plan.py").write_bytes(dict(repository())["ci/post_plan.py"])
    talk = [comment(number, "words") for number in range(100)]
    forged = comment(100, f"{MARKER}plan=0 -->\nforged", ours=False)
    _Forge.comments[:], _Forge.writes[:] = [*talk, forged], []
    _Forge.tokens.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), _Forge) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        surroundings = {name: value.replace("URL", url) for name, value in environment.items()}

        def post(plan: str) -> str:
            (tmp_path / "plan.md").write_text(plan, encoding="utf-8")
            command = [sys.executable, "post_plan.py", "plan.md", "site"]
            subprocess.run(command, cwd=tmp_path, env=surroundings, check=True, timeout=30)
            assert len(_Forge.comments) == 102
            return str(_Forge.comments[101]["body"])

        first, nothing = (
            f"{MARKER}plan=1 -->\n### Plan «новости»\n",
            f"{MARKER}plan=2 -->\n### ✅ No changes.\n",
        )
        assert [post(first), post(first), post(nothing)] == [first, first, nothing]
        assert "No plan could be made" in post("")
        server.shutdown()
    single = f"{path.format('')}/101"
    assert _Forge.writes == [("POST", path.format("12/")), (update, single), (update, single)]
    assert _Forge.tokens == {token}
    assert _Forge.comments[100] == forged


def test_every_command_finds_the_settings_from_the_root(new: Desk) -> None:
    for words in (
        ("vars", "studio-a"),
        ("show", "databases"),
        ("show", "asset", "EP001"),
        ("probe",),
    ):
        done = new.run(*words)
        assert (done.code, "no server is named" in done.err) == (0, False), (words, done)
    assert new.run("export", "--title", "EP001", "--out", "exported").code == 0


def test_the_commands_of_ci_need_no_secret(new: Desk) -> None:
    inventory = new.folder / "inventory.yml"
    text = inventory.read_text(encoding="utf-8").replace("# auth:", "auth:")
    assert "env.STUDIO_A_PASSWORD" in text
    inventory.write_text(text, encoding="utf-8")
    assert new.run("validate", ".").err == "No errors found.\n"
    checked = new.run("batch", "check", "batch.yml")
    assert (checked.code, checked.out) == (0, "")
