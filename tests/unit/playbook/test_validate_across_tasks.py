"""What ``validate`` finds between tasks: contradictions, handlers that never run, tasks that no tag chooses."""

from __future__ import annotations

from pathlib import Path

from msauto.errors import Problem
from msauto.playbook.hosts import ResolveOptions
from msauto.playbook.validate import validate
from tests.tables import table

INVENTORY = 'all: {hosts: {h: {server: {url: "http://h"}, database: D}}}\n'


def problems(folder: Path, *playbooks: str, tags: tuple[str, ...] = ()) -> list[Problem]:
    (folder / "i.yml").write_text(INVENTORY, encoding="utf-8")
    for number, text in enumerate(playbooks):
        (folder / f"p{number}.yml").write_text(text, encoding="utf-8")
    found = validate([str(folder / f"p{number}.yml") for number in range(len(playbooks))], ResolveOptions(
        (), (str(folder / "i.yml"),), env={}, tags=tags
    ))  # fmt: skip
    assert all(problem.place is not None for problem in found)
    return found


def of_tasks(folder: Path, *tasks: str) -> list[str]:
    text = "- hosts: all\n  tasks:\n" + "".join(f"    - {task}\n" for task in tasks)
    return [problem.message.replace(f"{folder}/", "") for problem in problems(folder, text)]


@table("playbook/tasks_that_contradict", "one", "other", "message")
def test_two_tasks_that_cannot_both_be(one: str, other: str, message: str, tmp_path: Path) -> None:
    found = of_tasks(tmp_path, f"asset: {{title: A, {one}}}", f"asset: {{title: A, {other}}}")
    assert len(found) == 1
    assert found[0].startswith(message)
    assert "p0.yml:3:" in found[0]
    assert "p0.yml:4:" in found[0]


@table("playbook/tasks_that_agree", "one", "other")
def test_two_tasks_that_may_both_be(one: str, other: str, tmp_path: Path) -> None:
    assert of_tasks(tmp_path, f"asset: {{title: A, {one}}}", f"asset: {{title: A, {other}}}") == []


def test_only_what_runs_together_contradicts(tmp_path: Path) -> None:
    desired, gone = "asset: {title: A, fields: {comment: x}}", "asset: {title: A, state: absent}"
    assert of_tasks(tmp_path, desired, f"{{{gone}, tags: never}}") == []
    assert of_tasks(tmp_path, desired, f"{{{gone}, when: false}}") == []
    assert of_tasks(tmp_path, desired, f"{{{gone}, when: asset.frames < 5}}") == []
    play = "- {hosts: all, tasks: [{%s}]}\n"
    assert problems(tmp_path, play % desired, play % gone) == []
    assert len(problems(tmp_path, play % desired + play % gone)) == 1


def test_what_tags_leave_out_still_contradicts(tmp_path: Path) -> None:
    text = """
- hosts: all
  tasks:
    - {asset: {title: A, markers: [{at: 0, track: Icon}]}, tags: [a]}
    - {asset: {title: A, markers: [{at: 0, track: Icon, state: absent}]}, tags: [b]}
    - {asset: {title: A, markers: [{at: 0, track: Icon, state: absent}]}, tags: [never]}
    - {asset: {title: B, fields: {comment: x}}, tags: [b]}
    - {asset: {title: B, fields: {comment: y}}, tags: [b]}
"""
    (problem,) = problems(tmp_path, text, tags=("a",))
    assert problem.message.startswith("the marker at 0 (Icon) is removed by a task")
    assert len(problems(tmp_path, text)) == 2


def test_channels(tmp_path: Path) -> None:
    found = of_tasks(
        tmp_path,
        "rss: {channel: t, items: [{guid: a, text: x}, {guid: b, text: x}]}",
        "rss: {channel: t, items: [{guid: a, text: y}, {guid: b, state: absent}]}",
        "rss: {channel: u, items: [{guid: a, text: z}]}",
    )
    assert found[0].startswith("item b is removed by a task (p0.yml:4:")
    assert found[1].startswith("item a: two tasks declare different values: 'x' in a.txt by a task (p0.yml:3:")


def test_a_list_that_each_round_of_a_loop_declares_whole(tmp_path: Path) -> None:
    items = "items: [{guid: '{{ item }}', file: '{{ item }}.txt', text: x}]"
    found = of_tasks(tmp_path, f"{{rss: {{channel: ticker, {items}, exactly: true}}, loop: [a, b]}}")
    (message,) = found
    assert message.startswith("each round of the loop declares the whole list (exactly), with other items")


def test_loops_show_the_place_of_the_task(tmp_path: Path) -> None:
    found = of_tasks(
        tmp_path, "{asset: {title: A, fields: {comment: '{{ item }}'}}, loop: [x, y]}"
    )  # fmt: skip
    place = "a task (p0.yml:3:35)"
    assert found == [f"the field comment: two tasks declare different values: 'x' by {place}, 'y' by {place}"]


def test_tasks_that_no_tag_chooses_are_checked(tmp_path: Path) -> None:
    found = of_tasks(tmp_path, "{asset: {title: '{{ nobody }}'}, tags: [never]}")
    assert found == ["undefined variable 'nobody'"]


def test_handlers_that_nobody_notifies(tmp_path: Path) -> None:
    text = """
- hosts: all
  tasks:
    - block:
        - {asset: {title: A}, notify: One}
        - import_tasks: more.yml
  handlers:
    - {name: One, command: {name: PARTNER_EXPORT_VERSION}, notify: Three}
    - {name: Two, command: {name: PARTNER_EXPORT_VERSION}}
    - {name: Three, command: {name: PARTNER_EXPORT_VERSION}}
    - {name: Thre, command: {name: PARTNER_EXPORT_VERSION}}
    - {name: Four, command: {name: PARTNER_EXPORT_VERSION}}
"""
    (tmp_path / "more.yml").write_text("- block: [{asset: {title: B}, notify: [Four]}]\n", encoding="utf-8")
    found = [problem for problem in problems(tmp_path, text) if problem.level == "warning"]
    assert [(problem.message, problem.remedy) for problem in found] == [
        ("no task notifies the handler 'Two', so it never runs", "add notify: to a task, or remove the handler"),
        ("no task notifies the handler 'Thre', so it never runs", "did you mean 'Three'?"),
    ]
    assert "Two" in found[0].excerpt
    templated = text.replace("notify: One}", "notify: '{{ who }}'}")
    assert not [problem for problem in problems(tmp_path, templated) if problem.level == "warning"]


def test_time_codes_that_exist_at_no_rate(tmp_path: Path) -> None:
    found = of_tasks(
        tmp_path,
        'asset: {title: A, fields: {icon_pos: "00:01:00;01"}}',
        'asset: {title: B, fields: {icon_pos: "00:10:00;00"}, markers: [{at: "00:09:00;02"}, {at: "00:09:00;00"}]}',
        'asset: {title: C, segments: [{number: 1, start: "00:01:00:00", duration: "00:01:00;00"}]}',
    )
    assert found == [
        "00:01:00;01 does not exist: drop-frame time codes skip it",
        "00:09:00;00 does not exist: drop-frame time codes skip it",
        "00:01:00;00 does not exist: drop-frame time codes skip it",
    ]


def test_tasks_are_named(tmp_path: Path) -> None:
    found = of_tasks(
        tmp_path,
        "{name: Cards, asset: {title: A, fields: {comment: x}}}",
        "{name: Friday, asset: {title: A, state: absent}}",
    )
    assert found == [
        "the asset is removed by the task 'Friday' (p0.yml:4:29) and declared by the task 'Cards' (p0.yml:3:28)"
    ]
