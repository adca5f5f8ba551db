from __future__ import annotations

from pathlib import Path

import pytest

from msauto.documents.document import outside_node
from msauto.errors import InputError
from msauto.model.desired import TitleRef
from msauto.model.server import Auth, Secret, Tls
from msauto.playbook.hosts import ResolveOptions, named_servers
from msauto.playbook.input_files import Files
from msauto.playbook.inventory import Host, Inventory, load_inventory, match_hosts
from msauto.playbook.resolve import resolve
from msauto.playbook.variables import Variables
from tests.tables import table

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


def test_deeper_groups_win_and_losers_are_told(tmp_path: Path) -> None:
    (tmp_path / "inventory.yml").write_text("""
all:
  vars: {x: all}
  children:
    outer: {vars: {x: outer}, children: {inner: {vars: {x: inner}, hosts: {h: }}}}
    zz: {vars: {x: zz}, hosts: {h: }}
""")
    inventory = load_inventory([str(tmp_path / "inventory.yml")], Files())
    sourced = Variables(inventory.hosts["h"].variables).all_of("x")
    assert [each.value for each in sourced] == ["inner", "zz", "outer", "all"]
    assert [each.node.place.line for each in sourced] == [5, 6, 5, 3]
    assert inventory.groups["outer"] == ("h",)


def test_server_block(tmp_path: Path) -> None:
    (tmp_path / "i.yml").write_text("""
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
""")
    (tmp_path / "p.yml").write_text("- {hosts: h, tasks: []}")
    env = {"PASSWORD": "hunter2", "KEY": "hunter3"}
    server = (
        resolve(ResolveOptions((str(tmp_path / "p.yml"),), (str(tmp_path / "i.yml"),), env=env))
        .work[0]
        .server
    )
    assert server.url == "https://h.tv.example:7901"
    assert server.version == (2, 9, 87)
    assert server.auth == Auth("ops", Secret("hunter2"), None, (("X-Key", Secret("hunter3")),))
    assert server.tls == Tls(verify=False, ca=str(tmp_path / "ca.pem"))
    assert (server.timeouts.connect, server.timeouts.read, server.connections) == (1.5, 30.0, 4)
    assert server.requests_per_second == 2.0
    assert (server.dialect.list_separator, server.dialect.rss_update) == (";", "delete_put")
    assert "hunter" not in repr(server)


def test_the_folder_of_the_playbook_is_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("inv.yml").write_text("all: {hosts: {h: {server: {url: http://h}, database: D}}}")
    Path("play.yml").write_text('- {hosts: all, tasks: [{asset: {title: "{{ playbook_dir }}"}}]}')
    found = resolve(ResolveOptions(("play.yml",), ("inv.yml",), env={}))
    assert found.work[0].intents[0].ref == TitleRef("D", str(tmp_path.resolve()))


def test_the_server_of_an_option_is_one_of_the_inventory_or_has_its_variables(
    tmp_path: Path,
) -> None:
    inventory = tmp_path / "i.yml"
    inventory.write_text(
        'all: {hosts: {a: {server: {url: "http://a"}}, b: {server: {url: "http://{{ env.B }}"}}}}'
    )

    def names(url: str, *only: str) -> list[str]:
        options = ResolveOptions((), (str(inventory),), url, env={"B": "b2"})
        return [each.spec.name for each in named_servers(options, names=only or None)]

    assert [names(url) for url in ("A:7901/", "http://b2", "http://127.0.0.1:8000")] == [
        ["a"],
        ["b"],
        ["127.0.0.1"],
    ]
    with pytest.raises(
        InputError, match="the plan is for the server 'a', and not for that of --server"
    ):
        names("http://b2", "a")


def test_a_name_that_only_an_inventory_can_set_is_told_with_a_server_alone(tmp_path: Path) -> None:
    (tmp_path / "p.yml").write_text(
        "- {hosts: all, database: N, tasks: [{asset: {title: '{{ house }}'}}]}\n"
    )
    options = ResolveOptions((str(tmp_path / "p.yml"),), server_url="http://h", env={})
    with pytest.raises(
        InputError, match=r"'house'(.|\n)*take the variables of an inventory: -i FILE"
    ):
        resolve(options)
