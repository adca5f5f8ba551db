from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from msauto.documents.document import outside_node
from msauto.errors import InputError
from msauto.model.desired import ResolvedPlaybooks, TitleRef
from msauto.model.server import Auth, Secret, Tls
from msauto.playbook.hosts import ResolveOptions, named_servers
from msauto.playbook.input_files import Files
from msauto.playbook.inventory import Host, Inventory, load_inventory, match_hosts
from msauto.playbook.resolve import resolve
from msauto.playbook.validate import validate
from msauto.playbook.variables import Level, Variables
from tests.tables import table

NOW = datetime(2026, 11, 20, tzinfo=UTC)
NODE = outside_node("hosts")
INVENTORY = Inventory(
    dict.fromkeys(("a1", "a2", "b1"), Host(NODE)),
    {"all": ("a1", "a2", "b1"), "alpha": ("a1", "a2"), "beta": ("b1",), "mixed": ("a2", "b1")},
)


@table("playbook/host_patterns", "pattern", "hosts")
def test_patterns(pattern: str, hosts: str) -> None:
    assert match_hosts(pattern, INVENTORY, NODE) == hosts.split()


@table("playbook/host_patterns_that_match_nothing", "pattern")
def test_patterns_that_match_nothing(pattern: str) -> None:
    with pytest.raises(InputError):
        match_hosts(pattern, INVENTORY, NODE)


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / (name.replace("__", "/") + ".yml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def run(folder: Path, **more: object) -> ResolvedPlaybooks:
    given: dict[str, object] = {"inventories": (str(folder / "inventory.yml"),), "env": {}, "now": NOW, **more}
    return resolve(ResolveOptions((str(folder / "play.yml"),), **given))  # type: ignore[arg-type]


LEVELS = [
    (Level.INVENTORY_GROUP, "inventory", "all: {vars: {x: 1-all}, children: {g: {vars: {x: 1}, hosts: {h: HOST}}}}"),
    (Level.GROUP_VARS_ALL, "group_vars__all", "x: 2"),
    (Level.GROUP_VARS, "group_vars__g", "x: 3"),
    (Level.INVENTORY_HOST, "", "x: 4, "),
    (Level.HOST_VARS, "host_vars__h", "x: 5"),
    (Level.PLAY, "", "vars: {x: 6}, "),
    (Level.VARS_FILES, "vars", "x: 7"),
    (Level.BLOCK, "", "vars: {x: 8}, "),
    (Level.TASK, "", "vars: {x: 9}, "),
    (Level.LOOP, "", "loop: [10], loop_control: {loop_var: x}, "),
    (Level.EXTRA, "", ""),
]


@pytest.mark.parametrize("top", range(1, len(LEVELS) + 1))
def test_each_level_wins_over_those_before(top: int, tmp_path: Path) -> None:
    used = {level: text for level, _, text in LEVELS[:top]}
    files = {name: text for _, name, text in LEVELS[:top] if name}
    host = "{" + used.get(Level.INVENTORY_HOST, "") + 'server: {url: "http://h"}}'
    files["inventory"] = files["inventory"].replace("HOST", host)
    task = used.get(Level.LOOP, "") + used.get(Level.TASK, "") + 'asset: {title: "{{ x }}"}'
    vars_files = "vars_files: [vars.yml], " if Level.VARS_FILES in used else ""
    block = used.get(Level.BLOCK, "") + "block: [{" + task + "}]"
    files["play"] = "- {hosts: all, database: D, " + used.get(Level.PLAY, "") + vars_files + "tasks: [{" + block + "}]}"
    write(tmp_path, **files)
    resolved = run(tmp_path, extra_vars=("x=11",) if Level.EXTRA in used else ())
    assert [intent.ref for intent in resolved.work[0].intents] == [TitleRef("D", str(top))]


def test_deeper_groups_win_and_losers_are_told(tmp_path: Path) -> None:
    write(
        tmp_path,
        inventory="""
all:
  vars: {x: all}
  children:
    outer: {vars: {x: outer}, children: {inner: {vars: {x: inner}, hosts: {h: }}}}
    zz: {vars: {x: zz}, hosts: {h: }}
""",
    )
    inventory = load_inventory([str(tmp_path / "inventory.yml")], Files())
    sourced = Variables(inventory.hosts["h"].variables).all_of("x")
    assert [each.value for each in sourced] == ["inner", "zz", "outer", "all"]
    assert [each.node.place.line for each in sourced] == [5, 6, 5, 3]
    assert inventory.groups["outer"] == ("h",)


def test_later_inventories_and_folders(tmp_path: Path) -> None:
    write(
        tmp_path,
        inv__a='all: {hosts: {h: {server: {url: "http://h"}, x: 1}}}',
        inv__b="all: {hosts: {h: {x: 2}, i: {}}}",
        inv__group_vars__all__one="y: 1",
        inv__group_vars__all__two="y: 2",
        inv__host_vars__i='server: {url: "https://i:80"}',
        play='- {hosts: all, database: D, tasks: [{asset: {title: "{{ x | default(0) }}-{{ y }}"}}]}',
    )
    resolved = run(tmp_path, inventories=(str(tmp_path / "inv"),))
    assert [(work.server.url, work.intents[0].ref) for work in resolved.work] == [
        ("http://h:7901", TitleRef("D", "2-2")),
        ("https://i:80", TitleRef("D", "0-2")),
    ]
    assert len(resolved.inputs) == 6
    assert all(len(each.sha256) == 64 for each in resolved.inputs)


def test_vars_of_nobody_are_told(tmp_path: Path) -> None:
    write(
        tmp_path,
        inventory="all: {hosts: {studio: {server: {url: http://h}}}}",
        host_vars__studoi="x: 1",
        group_vars__nobody="x: 1",
        play="- {hosts: all, tasks: []}",
    )
    warnings = run(tmp_path).warnings
    assert [warning.partition(": ")[2] for warning in warnings] == [
        "unknown group 'nobody' (available: all)",
        "unknown host 'studoi' (did you mean 'studio'?)",
    ]


def test_server_block(tmp_path: Path) -> None:
    write(
        tmp_path,
        inventory="""
all:
  vars: {domain: tv.example}
  hosts:
    h:
      server:
        url: "https://{{ inventory_hostname }}.{{ domain }}"
        version: "2.9.87"
        timezone: Europe/Oslo
        auth: {basic: {username: ops, password: "{{ env.PASSWORD }}"}, headers: {X-Key: "{{ env.KEY }}"}}
        tls: {verify: false, ca: ca.pem}
        timeouts: {connect: 1.5}
        connections: 4
        requests_per_second: 2
        dialect: {list_separator: ;, rss_update: delete_put}
""",
        play="- {hosts: h, tasks: []}",
    )
    server = run(tmp_path, env={"PASSWORD": "hunter2", "KEY": "hunter3"}).work[0].server
    assert server.url == "https://h.tv.example:7901"
    assert server.version == (2, 9, 87)
    assert server.auth == Auth("ops", Secret("hunter2"), None, (("X-Key", Secret("hunter3")),))
    assert server.tls == Tls(verify=False, ca=str(tmp_path / "ca.pem"))
    assert (server.timeouts.connect, server.timeouts.read, server.connections) == (1.5, 30.0, 4)
    assert server.requests_per_second == 2.0
    assert (server.dialect.list_separator, server.dialect.rss_update) == (";", "delete_put")
    assert "hunter" not in repr(server)


MERGED = {
    "inventory": """
all:
  vars:
    server: {timezone: Europe/Oslo, connections: 1, timeouts: {read: 5}, auth: {bearer: "{{ env.TOKEN }}"}}
  children:
    playout:
      vars: {server: {connections: 2, timeouts: {connect: 1}}}
      hosts:
        h: {server: {url: "http://h", connections: 5}}
""",
    "group_vars__all": "server: {connections: 3, requests_per_second: 9, tls: {ca: ca.pem}}",
    "group_vars__playout": "server: {connections: 4, dialect: {list_separator: ;}}",
    "host_vars__h": "server: {connections: 6}",
    "play": "- {hosts: h, tasks: []}",
}


def test_the_keys_of_server_blocks_are_merged_from_groups_to_host(tmp_path: Path) -> None:
    write(tmp_path, **MERGED)
    server = run(tmp_path, env={"TOKEN": "hunter2"}).work[0].server
    assert (server.url, server.timezone, server.connections) == ("http://h:7901", "Europe/Oslo", 6)
    assert (server.auth.bearer, server.requests_per_second) == (Secret("hunter2"), 9.0)
    assert (server.timeouts.connect, server.timeouts.read) == (1.0, 30.0), "a mapping inside is one value"
    assert server.dialect.list_separator == ";"
    assert server.tls.ca == str(tmp_path / "group_vars" / "ca.pem"), "a file is beside the one that names it"
    stronger = run(tmp_path, env={"TOKEN": "hunter2"}, extra_vars=("{server: {connections: 7}}",)).work[0].server
    assert (stronger.url, stronger.connections) == ("http://h:7901", 7)


def test_a_whole_server_block_may_be_a_template_and_omit_leaves_the_weaker_key(tmp_path: Path) -> None:
    write(
        tmp_path,
        inventory="""
all:
  vars:
    server: "{{ common }}"
    common: {timezone: Europe/Oslo, connections: 2}
  hosts:
    h: {server: {url: "http://h", connections: "{{ omit }}"}}
""",
        play="- {hosts: h, tasks: []}",
    )
    server = run(tmp_path).work[0].server
    assert (server.url, server.timezone, server.connections) == ("http://h:7901", "Europe/Oslo", 2)


def problems_of(folder: Path, **files: str) -> list[str]:
    """Return what is wrong with a server block, which planning and validating report alike."""
    write(folder, **{**MERGED, **files})
    with pytest.raises(InputError) as caught:
        run(folder, env={"TOKEN": "hunter2"})
    options = ResolveOptions((), (str(folder / "inventory.yml"),), env={"TOKEN": "hunter2"})
    validated = validate([str(folder / "play.yml")], options)
    assert [str(each.place) for each in validated] == [str(each.place) for each in caught.value.problems]
    return [f"{each.place}: {each.message}".replace(f"{folder}/", "") for each in caught.value.problems]


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("group_vars__all", "server: {timezone: '{{ zone }}'}", ["group_vars/all.yml:1:20: undefined variable 'zone'"]),
        ("group_vars__all", "server: {conections: 3}", ["group_vars/all.yml:1:10: unknown key 'conections'"]),
        (
            "group_vars__playout",
            "server: {dialect: {segment_update: recreat}, timeouts: {conect: 1}}",
            [
                "group_vars/playout.yml:1:36: segment_update cannot be 'recreat'",
                "group_vars/playout.yml:1:57: unknown key 'conect'",
            ],
        ),
        (
            "group_vars__all",
            "server: {auth: {basic: {username: ops}}}",
            ["group_vars/all.yml:1:24: basic has no password"],
        ),
        (
            "group_vars__all",
            "server:\n  timeouts:\n  read: 5\n",
            ["group_vars/all.yml:3:3: wrong indentation: timeouts has no value; its keys on the same level: read"],
        ),
        ("group_vars__all", "server: http://h", ["group_vars/all.yml:1:9: server must be a mapping, not text"]),
        ("inventory", "all: {hosts: {h: {server: {connections: 5}}}}", ["host_vars/h.yml:1:9: url is missing"]),
    ],
)
def test_a_problem_of_a_merged_block_is_where_its_key_is_set(
    file: str, text: str, expected: list[str], tmp_path: Path
) -> None:
    assert problems_of(tmp_path, **{"host_vars__h": "server: {connections: 6}", file: text}) == expected


def test_a_key_that_a_stronger_block_sets_again_is_not_evaluated(tmp_path: Path) -> None:
    write(tmp_path, **{**MERGED, "group_vars__all": "server: {connections: '{{ nobody }}'}"})
    assert run(tmp_path, env={"TOKEN": "hunter2"}).work[0].server.connections == 6


@pytest.mark.parametrize("text", ["server.auth.bearer", "hostvars['h'].server.auth.bearer", "hostvars['h']['server']"])
def test_no_template_reaches_a_password(text: str, tmp_path: Path) -> None:
    write(
        tmp_path,
        inventory="all: {hosts: {h: {server: {url: http://h, auth: {bearer: hunter2}}, x: 1}}}",
        play=f'- {{hosts: all, database: D, tasks: [{{asset: {{title: "{{{{ {text} }}}}"}}}}]}}',
    )
    with pytest.raises(InputError, match=r"undefined variable|not found") as caught:
        run(tmp_path)
    assert "hunter" not in str(caught.value)
    write(tmp_path, play="- {hosts: all, database: D, vars: {server: own}, tasks: [{asset: {title: '{{ server }}'}}]}")
    assert run(tmp_path).work[0].intents[0].ref == TitleRef("D", "own")


def test_one_server_by_url(tmp_path: Path) -> None:
    write(tmp_path, play="- {hosts: playout, database: D, tasks: [{asset: {title: A}}]}")
    resolved = run(tmp_path, inventories=(), server_url="http://127.0.0.1:8000")
    assert [(work.server.name, work.server.url) for work in resolved.work] == [("127.0.0.1", "http://127.0.0.1:8000")]
    with pytest.raises(InputError, match="no inventory"):
        run(tmp_path, inventories=())
    (work,) = run(tmp_path, inventories=(), server_url="Studio-A").work
    assert (work.server.name, work.server.url) == ("studio-a", "http://studio-a:7901")


TWO = """
all:
  vars: {house: Kanal 5, server: {connections: 3}}
  hosts: {b: {server: {url: "http://{{ env.B }}"}}}
  children: {playout: {hosts: {a: {server: {url: http://a}}}, vars: {house: Sport}}}
"""


@pytest.mark.parametrize(
    ("url", "hosts", "expected"),
    [
        ("A:7901/", "all", {"a": ("http://a:7901", 3, "Sport")}),  # one of the inventory, written in another way
        ("http://b2", "all", {"b": ("http://b2:7901", 3, "Kanal 5")}),
        ("http://127.0.0.1:8000", "playout", {"127.0.0.1": ("http://127.0.0.1:8000", 3, "Kanal 5")}),
    ],
)
def test_a_server_with_an_inventory(url: str, hosts: str, expected: dict[str, object], tmp_path: Path) -> None:
    play = f"- {{hosts: {hosts}, database: D, tasks: [{{asset: {{title: '{{{{ house }}}}'}}}}]}}"
    write(tmp_path, inventory=TWO, play=play)
    work = run(tmp_path, server_url=url, env={"B": "b2"}).work
    found = [(each.server, each.intents[0].ref) for each in work]
    shown = {spec.name: (spec.url, spec.connections, ref.title) for spec, ref in found if isinstance(ref, TitleRef)}
    assert shown == expected
    named = named_servers(ResolveOptions(("play.yml",), (str(tmp_path / "inventory.yml"),), url, env={"B": "b2"}))
    assert [each.spec.name for each in named] == [*expected]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"server_url": "http://a:8000"}, "the inventory has another server called 'a'"),
        ({"server_url": "http://127.0.0.1", "limit": "a"}, "the limit does not match the server '127.0.0.1'"),
        ({"server_url": "http://b2", "limit": "a"}, "the pattern 'a:&b' matches no host"),
    ],
)
def test_a_server_with_an_inventory_that_does_not_fit(more: dict[str, str], message: str, tmp_path: Path) -> None:
    write(tmp_path, inventory=TWO, play="- {hosts: all, database: D, tasks: []}")
    with pytest.raises(InputError, match=message):
        run(tmp_path, env={"B": "b2"}, **more)


def test_patterns_decide_for_a_server_of_the_inventory(tmp_path: Path) -> None:
    write(tmp_path, inventory=TWO, play="- {hosts: playout, database: D, tasks: []}")
    with pytest.raises(InputError, match=r"--server: the limit matches no host of any play"):
        run(tmp_path, env={"B": "b2"}, server_url="http://b2")


def test_a_run_of_another_server_is_not_undone_on_that_of_server(tmp_path: Path) -> None:
    write(tmp_path, inventory=TWO)
    options = ResolveOptions((), (str(tmp_path / "inventory.yml"),), "http://b2", env={"B": "b2"})
    with pytest.raises(InputError, match="the plan is for the server 'a', and not for that of --server"):
        named_servers(options, names=["a"])


def test_limit(tmp_path: Path) -> None:
    write(
        tmp_path,
        inventory='all: {vars: {server: {url: "http://{{ inventory_hostname }}"}}, hosts: {a: {}, b: {}}}',
        play="- {hosts: all, tasks: []}",
    )
    assert [work.server.name for work in run(tmp_path, limit="b").work] == ["b"]
    with pytest.raises(InputError, match="unknown host or group 'c'"):
        run(tmp_path, limit="c")


@table("playbook/extra_variables", "text", "title")
def test_extra_variables(text: str, title: str, tmp_path: Path) -> None:
    write(tmp_path, play='- {hosts: all, database: D, tasks: [{asset: {title: "{{ x }}"}}]}')
    resolved = run(tmp_path, inventories=(), server_url="http://h", extra_vars=("x=0", text))
    assert resolved.work[0].intents[0].ref == TitleRef("D", title)


def test_extra_variables_from_a_file_and_wrong_ones(tmp_path: Path) -> None:
    write(tmp_path, play='- {hosts: all, database: D, tasks: [{asset: {title: "{{ x }}"}}]}', more="x: File")
    given = {"inventories": (), "server_url": "http://h"}
    resolved = run(tmp_path, extra_vars=(f"@{tmp_path / 'more.yml'}",), **given)
    assert resolved.work[0].intents[0].ref == TitleRef("D", "File")
    for wrong in ("x", "[1]", "@nowhere.yml", "env=1", "{"):
        with pytest.raises(InputError):
            run(tmp_path, extra_vars=(wrong,), **given)


def test_vars_folders_as_ansible_reads_them(tmp_path: Path) -> None:
    write(
        tmp_path,
        inv="all: {children: {g: {hosts: {h.example: {server: {url: http://h}}}}}}",
        play='- {hosts: "h.*:&g", database: D, tasks: [{asset: {title: "{{ a }}{{ b }}{{ c }}{{ d }}{{ e }}"}}]}',
    )
    for name, text in {
        "group_vars/all.json": '{"a": 1}',
        "group_vars/g": "b: 2",
        "group_vars/g~": "b: wrong",
        "group_vars/notes.txt": "no variables",
        "host_vars/h.example.json": '{"c": 3}',
        "host_vars/h.example": "d: 4",
        "group_vars/all/deep/more.json": '{"e": 5}',
        "group_vars/all/.hidden.yml": "e: wrong",
        "group_vars/all/notes.md": "e: wrong",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = run(tmp_path, inventories=(str(tmp_path / "inv.yml"),), limit="h.ex*")
    assert found.work[0].intents[0].ref == TitleRef("D", "12345")
    assert found.warnings == ()


def test_the_folder_of_the_playbook_is_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, inv="all: {hosts: {h: {server: {url: http://h}, database: D}}}")
    write(tmp_path, play='- {hosts: all, tasks: [{asset: {title: "{{ playbook_dir }}"}}]}')
    monkeypatch.chdir(tmp_path)
    found = resolve(ResolveOptions(("play.yml",), ("inv.yml",), env={}, now=NOW))
    assert found.work[0].intents[0].ref == TitleRef("D", str(tmp_path.resolve()))
