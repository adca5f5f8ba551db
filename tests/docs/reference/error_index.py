"""The error index of the docs: for each kind of problem what it means, and an example that is really run."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from msauto.cli.main import main
from msauto.errors import ProblemKind

HEAD = """# Error index

Each problem of a playbook, an inventory or a settings file ends with its kind in brackets. `--format json` has it as
`code`. The problem names the place, shows the line, and names the remedy. All problems of a run are
reported at once.

Other codes in JSON: `usage` (the command line), `planning` (a target cannot be planned), `refused` (a limit),
`locked` (another run), `ledger`, `server` and `error`. [Exit codes](commands.md) distinguish them as well.
"""
MEANINGS: Mapping[ProblemKind, str] = {
    "yaml": "The text is not valid YAML or TOML: indentation, quotes, or characters that are not UTF-8.",
    "duplicate-key": "A key occurs twice in one mapping. The first one would be lost without notice.",
    "unknown-key": "A key or module does not exist here. Mostly it is misspelled, or at the wrong level.",
    "not-supported": "A key or module of Ansible that msauto does not have. The remedy names what does the same.",
    "missing-key": "A required key is missing.",
    "keys-together": "Keys are used together that exclude each other, or one is used without the key that it needs.",
    "wrong-type": "A value is of another type: a list, a mapping, text, a number, or true and false.",
    "invalid-value": "A value of the right type is not allowed: out of range, misspelled, or used twice.",
    "template": "A template or an expression is invalid, or fails when it is evaluated.",
    "undefined-name": "A template uses a name, a fact, a filter or a key that does not exist.",
    "time-code": "A position or duration is not a valid time code, or does not exist at the frame rate.",
    "conflict": "Two tasks want different things of one target.",
    "file": "A file cannot be found or read, or is outside the repository.",
    "host": "A host, group, pattern or server of the inventory is missing or invalid.",
    "variable": "A variable has an invalid name, is missing, or refers to itself.",
    "secret": "A secret is missing, or a value that is secret is used where it would show.",
    "unused": "Something is valid, and has no effect.",
    "plan-file": "A saved plan cannot be applied: it is incomplete, or names what only the command line can.",
}
INVENTORY = "all: {hosts: {studio-a: {server: {url: http://studio-a}, database: NEWS}}}\n"
PLAY = "- hosts: all\n  tasks:\n"

EXAMPLES: Mapping[ProblemKind, str] = {
    "yaml": PLAY + "    - name: Comment\n      asset:\n      title: News\n",
    "duplicate-key": PLAY
    + "    - asset: {title: News, title: Evening News, fields: {comment: Ready}}\n",
    "unknown-key": PLAY + "    - asset: {title: News, fields: {coment: Ready}}\n",
    "not-supported": PLAY
    + "    - asset: {title: News, fields: {comment: Ready}}\n      ignore_errors: true\n",
    "missing-key": PLAY + "    - asset: {title: News, segments: [{number: 1, start: 0}]}\n",
    "keys-together": PLAY + "    - asset: {title: News, state: absent, fields: {comment: Ready}}\n",
    "wrong-type": PLAY + "    - asset: {title: News, markers: {at: 0, title: Start}}\n",
    "invalid-value": PLAY + "    - asset: {title: News, markers: [{at: 0, track: Cue}]}\n",
    "template": PLAY + "    - asset: {title: News}\n      when: asset.title = 'News'\n",
    "undefined-name": PLAY + '    - asset: {title: "{{ episode }}", fields: {comment: Ready}}\n',
    "time-code": PLAY + '    - asset: {title: News, markers: [{at: "00:61:00:00"}]}\n',
    "conflict": PLAY
    + "    - asset: {title: News, fields: {comment: Ready}}\n    - asset: {title: News, fields: {comment: Raw}}\n",
    "file": "- hosts: all\n  vars_files: [shows.yml]\n  tasks: []\n",
    "host": "- hosts: studio-b\n  tasks: []\n",
    "variable": "- hosts: all\n  vars: {asset: News}\n  tasks: []\n",
    "secret": PLAY + "    - asset: {title: !secret Top Secret News, fields: {comment: Ready}}\n",
    "unused": PLAY
    + "    - asset: {title: News, fields: {comment: Ready}}\n  handlers:\n"
    + "    - {name: Export, command: {name: PARTNER_EXPORT_VERSION}}\n",
    "plan-file": '{"format": "msauto-plan", "version": 2}\n',
}


def error_index_page() -> str:
    """Return the page, with the output of now."""
    return HEAD + "".join(
        f"\n## {kind}\n\n{MEANINGS[kind]}\n\n{_example(kind)}" for kind in MEANINGS
    )


def _example(kind: ProblemKind) -> str:
    output = output_of(kind)
    return f"```text\n{output.rstrip()}\n```\n"


def output_of(kind: ProblemKind) -> str:
    """Return what msauto prints about the example of a kind."""
    plan = kind == "plan-file"
    name = "news.json" if plan else "news.yml"
    arguments = ["apply", name] if plan else ["validate", name, "-i", "inventory.yml"]
    before = Path.cwd()
    with (
        tempfile.TemporaryDirectory() as folder,
        redirect_stdout(io.StringIO()) as out,
        redirect_stderr(out),
    ):
        os.chdir(folder)
        try:
            Path(name).write_text(EXAMPLES[kind], encoding="utf-8")
            Path("inventory.yml").write_text(INVENTORY, encoding="utf-8")
            main([*arguments, "--state-dir", folder])
        finally:
            os.chdir(before)
    return out.getvalue().replace(folder, "/srv/news")
