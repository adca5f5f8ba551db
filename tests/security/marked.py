"""Playbooks with a variable ``token`` that is marked as secret, planned in every form; nothing may show it."""

from __future__ import annotations

import json

from tests.cli.command_line import Desk, Said

TOKEN = "geheimnis7Zq4"
OTHER = "zweites9Wx2Token"
ENV = {"TOKEN": TOKEN, "OTHER": OTHER, "SHORT": "abc", "EMPTY": ""}
INV = ("-i", "inventory.yml", "--state-dir", "state")


def write(desk: Desk, tasks: str, variables: str = "") -> None:
    head = (
        f'- hosts: all\n  vars:\n    token: "{{{{ env.TOKEN | secret }}}}"\n{variables}  tasks:\n'
    )
    play = head + "".join(f"    {line}\n" for line in tasks.strip().splitlines())
    desk.write("play.yml", play.replace("$TOKEN", TOKEN))


def comment(desk: Desk, template: str, variables: str = "") -> None:
    write(
        desk, f"- asset: {{title: EP001, fields: {{comment: {json.dumps(template)}}}}}", variables
    )


def silent(*sourced: Said) -> None:
    for each in sourced:
        for text in (each.out, each.err):
            assert "Traceback" not in text
            assert TOKEN not in text
            assert OTHER not in text
            assert TOKEN[::-1] not in text
            assert TOKEN.upper() not in text


def plans(desk: Desk) -> Said:
    """Plan in every form; nothing shows. Returns the output as JSON."""
    sourced = [
        desk.run("plan", "play.yml", *INV, "--format", form, "-vv")
        for form in ("json", "text", "markdown", "html")
    ]
    silent(*sourced, desk.run("validate", "play.yml", "inventory.yml"))
    return sourced[0]
