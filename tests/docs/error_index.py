"""The error index of the docs: for each kind of problem what it means, and an example that is really run."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from msauto.cli.main import main
from msauto.errors import PROBLEM_KINDS, ProblemKind

HEAD = """# Error index

Each problem of a playbook, an inventory or a settings file ends with its kind in brackets. `--format json` has it as
`code`. The problem names the place, shows the line, and names the remedy. All problems of a run are
reported at once.

Other codes in JSON: `usage` (the command line), `planning` (a target cannot be planned), `refused` (a limit),
`locked` (another run), `ledger`, `server` and `error`. [Exit codes](commands.md) distinguish them as well.
"""
INVENTORY = "all: {hosts: {studio-a: {server: {url: http://studio-a}, database: NEWS}}}\n"
PLAY = "- hosts: all\n  tasks:\n"

EXAMPLES: Mapping[ProblemKind, str] = {
    "yaml": PLAY + "    - name: Comment\n      asset:\n      title: News\n",
    "duplicate-key": PLAY + "    - asset: {title: News, title: Evening News, fields: {comment: Ready}}\n",
    "unknown-key": PLAY + "    - asset: {title: News, fields: {coment: Ready}}\n",
    "not-supported": PLAY + "    - asset: {title: News, fields: {comment: Ready}}\n      ignore_errors: true\n",
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
    return HEAD + "".join(f"\n## {kind}\n\n{PROBLEM_KINDS[kind]}\n\n{_example(kind)}" for kind in PROBLEM_KINDS)


def _example(kind: ProblemKind) -> str:
    output = output_of(kind)
    return f"```text\n{output.rstrip()}\n```\n"


def output_of(kind: ProblemKind) -> str:
    """Return what msauto prints about the example of a kind."""
    plan = kind == "plan-file"
    name = "news.json" if plan else "news.yml"
    arguments = ["apply", name] if plan else ["validate", name, "-i", "inventory.yml"]
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()) as out, redirect_stderr(out):
        os.chdir(folder)
        try:
            Path(name).write_text(EXAMPLES[kind], encoding="utf-8")
            Path("inventory.yml").write_text(INVENTORY, encoding="utf-8")
            main([*arguments, "--state-dir", folder])
        finally:
            os.chdir(before)
    return out.getvalue()
