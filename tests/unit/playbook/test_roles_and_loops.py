"""Roles, and loops over what holds tasks: everything is known offline, with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from msauto.errors import InputError
from msauto.model.desired import Intent
from msauto.model.facts import Facts
from msauto.playbook import intents as intents_module
from msauto.playbook.hosts import ResolveOptions
from msauto.playbook.resolve import resolve
from msauto.playbook.validate import validate
from tests.tables import table

EXPORT = (
    "- {name: Export, command: {name: PARTNER_MOVE_TO_ASSET, params: {asset_id: '{{ week }}'}}}"
)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("msauto.toml").touch()
    Path("i.yml").write_text(
        "all: {hosts: {h: {server: {url: 'http://h'}, database: D}}}\n", encoding="utf-8"
    )


def write_role(name: str = "films", folder: str = "roles", **parts: str | None) -> None:
    for part, text in {"tasks": "- asset: {title: A}", **parts}.items():
        if text is not None:
            path = Path(folder, name, part, "main.yml")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def options(play: str, **more: Any) -> ResolveOptions:
    Path("p.yml").write_text(f"- {{hosts: all,\n  {play}}}\n", encoding="utf-8")
    return ResolveOptions(("p.yml",), ("i.yml",), env={}, role_folders=("shared",), **more)


def intents(play: str, **more: Any) -> tuple[Intent, ...]:
    return resolve(options(play, **more)).work[0].intents


def titles(play: str, **more: Any) -> list[str]:
    return [getattr(each.ref, "title", "") for each in intents(play, **more)]


@table("playbook/roles_and_loops_in_error", "play", "files", "expected")
def test_what_is_wrong(play: str, files: dict[str, str] | None, expected: list[str]) -> None:
    write_role(**(files or {}))
    with pytest.raises(InputError) if expected else pytest.MonkeyPatch.context() as raised:
        intents(play)
    problems = raised.value.problems if isinstance(raised, pytest.ExceptionInfo) else ()
    assert [
        f"{each.place}: {each.message}" + f"\n  → {each.remedy}" * bool(each.remedy)
        for each in problems
    ] == expected


def test_the_order_of_variables() -> None:
    names = ("default", "host", "play", "role", "entry", "task", "extra")
    title = " ".join(f"{{{{ {name} }}}}" for name in names)
    defaults = "{" + ", ".join(f"{name}: 1" for name in names) + "}"
    in_vars = "{role: 4, entry: 4, task: 4, extra: 4}"
    write_role(
        tasks=f"- {{asset: {{title: '{title}'}}, vars: {{task: 6, extra: 6}}}}",
        defaults=defaults,
        vars=in_vars,
    )
    Path("group_vars").mkdir()
    Path("group_vars/all.yml").write_text(
        "{host: 2, play: 2, role: 2, entry: 2, task: 2, extra: 2}", encoding="utf-8"
    )
    play = "vars: {play: 3, role: 3, entry: 3, task: 3}, "
    given = "vars: {entry: 5, task: 5, extra: 5}"
    for use in (
        f"roles: [{{role: films, {given}}}]",
        f"tasks: [{{import_role: {{name: films}}, {given}}}]",
    ):
        assert titles(play + use, extra_vars=("extra=7",)) == ["1 2 3 4 5 6 7"]
    with pytest.raises(InputError, match="undefined variable 'default'"):
        intents("roles: [films], tasks: [{asset: {title: '{{ default }}'}}]")


def test_tags_and_conditions_hold_for_a_whole_role() -> None:
    write_role(tasks="- import_tasks: more.yml")
    Path("roles/films/tasks/more.yml").write_text(
        "- {asset: {title: B}, tags: [b]}", encoding="utf-8"
    )
    play = "roles: [{role: films, tags: [films], when: week == 1}], vars: {week: 1}, tasks: [{asset: {title: C}}]"
    assert titles(play) == ["B", "C"]
    assert titles(play, tags=("films",)) == titles(play, tags=("b",)) == ["B"]
    assert titles(play, skip_tags=("films",)) == titles(play, extra_vars=("{week: 2}",)) == ["C"]


def test_loops_around_tasks_in_the_order_of_their_items() -> None:
    write_role(tasks="- asset: {title: 'role {{ film }}'}")
    inner = "{name: T, asset: {title: '{{ n }} {{ film }} {{ item }}'}, loop: '{{ parts[film] }}'}"
    block = (
        "{loop: [a, b, c], loop_control: {loop_var: film, index_var: n, label: 'film {{ film }}'}, "
        f"when: film in parts, block: [{inner}, {{import_role: {{name: films}}}}], "
        "vars: {parts: {a: [1, 2], c: [3]}}}"
    )
    found = intents(f"tasks: [{block}, {{asset: {{title: last}}}}]")
    assert [getattr(each.ref, "title", "") for each in found] == [
        *(
            "0 a 1",
            "0 a 2",
            "role a",
            "2 c 3",
            "role c",
            "last",
        )  # b has no parts, and its condition comes before them
    ]
    assert [each.source.task for each in found] == [
        "T (film a)",
        "T (film a)",
        "film a",
        "T (film c)",
        "film c",
        "",
    ]


def test_a_loop_is_evaluated_with_the_variables_around_it() -> None:
    tasks = "{loop: '{{ films }}', block: [{asset: {title: '{{ item }}'}, vars: {films: [x]}}], vars: {films: [a, b]}}"
    assert titles(f"tasks: [{tasks}]") == ["a", "b"]


def test_a_handler_of_a_role_has_the_variables_of_the_import_that_notifies_it() -> None:
    write_role(
        tasks="- {asset: {title: 'A {{ week }}'}, notify: Export}",
        handlers=EXPORT,
        defaults="week: 1",
    )
    write_role(
        "other",
        tasks="- {asset: {title: Z}, notify: Own}",
        handlers=EXPORT.replace("Export", "Own"),
    )
    play = "roles: [films, {role: films, vars: {week: 2}}, films, {role: other, vars: {week: 3}}]"
    found = intents(play + ", tasks: [{asset: {title: C}, notify: Own}]")
    called = [[(one.evaluate(Facts()).params, one.order) for one in each.notify] for each in found]  # type: ignore[union-attr]
    first = [((("asset_id", "1"),), (0, 0))]
    own = [((("asset_id", "3"),), (0, 2))]
    assert called == [first, [((("asset_id", "2"),), (0, 1))], first, own, own]


def test_lookups_of_a_role_look_in_its_files_first() -> None:
    write_role(
        tasks='- asset: {title: \'{{ lookup("file", "a.txt") }} {{ lookup("file", "b.txt") }}\'}'
    )
    Path("roles/films/files").mkdir()
    for name, text in {"roles/films/files/a.txt": "role", "a.txt": "a", "b.txt": "b"}.items():
        Path(name).write_text(text, encoding="utf-8")
    resolved = resolve(
        options('roles: [films], tasks: [{asset: {title: \'{{ lookup("file", "a.txt") }}\'}}]')
    )
    assert [getattr(each.ref, "title", "") for each in resolved.work[0].intents] == ["role b", "a"]
    assert "roles/films/files/a.txt" in [each.path for each in resolved.inputs]
    Path("roles/films/files/a.txt").unlink()
    Path("roles/films/files/a.txt").symlink_to("/etc/hostname")
    with pytest.raises(InputError, match="outside the playbook's repository"):
        intents("roles: [films]")


def test_a_link_to_nothing_is_not_passed_over() -> None:
    write_role(vars="a: 1")
    Path("roles/films/vars/main.yml").unlink()
    Path("roles/films/vars/main.yml").symlink_to("nothing.yml")
    with pytest.raises(InputError, match="a link to a file that does not exist"):
        intents("roles: [films]")


def test_a_role_outside_the_repository_needs_the_settings(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    write_role(folder="shared")
    (repository / "msauto.toml").touch()
    (repository / "p.yml").write_text("- {hosts: all, roles: [films]}", encoding="utf-8")
    allowed = ResolveOptions(("repository/p.yml",), ("i.yml",), env={}, role_folders=("shared",))
    with pytest.raises(InputError, match="outside the playbook's repository"):
        resolve(allowed)


def test_validate_checks_roles_as_what_they_are() -> None:
    handlers = "- {name: H, command: {name: PARTNER_EXPORT_VERSION}}"
    write_role(
        tasks="- {asset: {title: A}, notify: H}",
        handlers=handlers,
        defaults="all: {hosts: 1}",
        meta="x: 1",
    )
    write_role(
        "unused", tasks="- {asset: {titel: A}, notify: Of the play}\n- import_tasks: sub/more.yml"
    )
    Path("roles/unused/tasks/sub").mkdir()
    Path("roles/unused/tasks/sub/more.yml").write_text(
        "- import_role: {name: nowhere}", encoding="utf-8"
    )
    Path("vars").mkdir()
    Path("vars/main.yml").write_text("a: 1", encoding="utf-8")
    found = validate(["."], options("roles: [films]"))
    assert [f"{each.place}: {each.message}" for each in found] == [
        "roles/unused/tasks/main.yml:1:12: unknown key 'titel'",
        "roles/unused/tasks/sub/more.yml:1:23: role 'nowhere' not found in roles or shared",
    ]


def test_validate_finds_what_a_role_imports_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    write_role("one", "library", tasks="- import_role: {name: two}")
    write_role("two", "library")
    Path("tasks.yml").write_text("- import_role: {name: elsewhere}", encoding="utf-8")
    for folder in (".", "library", "one"):
        monkeypatch.chdir(folder)
        assert validate(["."], ResolveOptions(())) == []


LOOPS = "tasks: [{loop: '{{ range(40000) }}', loop_control: {loop_var: n}, block: ["
ENDLESS = LOOPS + "{asset: {title: x}, when: item < 0, loop: '{{ range(60000) }}'}]}]"


@pytest.mark.scale
def test_a_loop_with_too_many_items_ends_those_around_it() -> None:
    """The loop is not evaluated for each of the other 39,998 items."""
    with pytest.raises(InputError) as caught:
        resolve(options(ENDLESS))
    assert len(caught.value.problems) == 1


def test_a_loop_that_takes_too_long_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intents_module, "_LOOP_SECONDS", -1000)
    with pytest.raises(InputError, match="the loop takes more than -1000 seconds") as caught:
        resolve(options("tasks: [{asset: {title: '{{ nowhere }}'}, loop: [1, 2]}]"))
    assert len(caught.value.problems) == 1


def test_imports_that_multiply_are_an_error() -> None:
    """Twelve files that each import the next one three times are 797,160 imports."""
    for number in range(12):
        Path(f"t{number}.yml").write_text(
            f"- import_tasks: t{number + 1}.yml\n" * 3, encoding="utf-8"
        )
    Path("t12.yml").write_text("[]\n", encoding="utf-8")
    with pytest.raises(InputError, match="more than 2,000 imports"):
        resolve(options("tasks: [{import_tasks: t0.yml}]"))
