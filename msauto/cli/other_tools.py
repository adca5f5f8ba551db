"""Flags and commands of Ansible and Terraform, and what does the same in msauto."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_FLAGS: Final = {
    "use msauto apply --yes": "--auto-approve --approve --no-input --input",
    "use -y, and the flag that the refusal names, such as --allow-delete N": "--force",
    "use msauto plan, or --check with apply": "-C",
    "use msauto plan: it writes nothing": "--check --dry-run",
    "use msauto plan": "--refresh-only",
    "a plan always shows the differences; remove it": "--diff -D",
    "use msauto validate": "--syntax-check",
    "use msauto plan --list-hosts, which needs no server": "--list-hosts",
    "use msauto plan --list-tasks, which needs no server": "--list-tasks",
    "use msauto plan --list-tags, which needs no server": "--list-tags",
    "use --tags, or --target": "--start-at-task",
    "use --target to apply a part of the plan": "--step",
    "nothing is cached; remove it": "--flush-cache",
    "a handler that did not run is pending, and the next run plans it; remove it": "--force-handlers",
    "use -i FILE": "--inventory-file",
    "use --format json": "--json",
    "use --format html": "--html",
    "use --out FILE": "--output -o",
    "use -e NAME=VALUE": "--var",
    "use -e @FILE": "--var-file",
    "write state: absent, and allow it with --allow-delete N": "--destroy",
    "live state is always read; remove it": "--refresh",
    "runs of the same database always exclude each other; see --lock-timeout": "--lock",
    "use --forks N": "--parallelism",
    "use --summary": "--quiet -q",
    "set server.auth in the inventory": "--ask-pass -k -u --user --private-key --key-file",
    "remove it: msauto only uses HTTP": "-b --become -K --ask-become-pass --become-user --become-method",
    "read secrets from the environment: env.NAME": (
        "--ask-vault-pass --ask-vault-password --vault-password-file --vault-id -J"
    ),
}
_COMMANDS: Final = {
    "use msauto validate": "lint",
    "use msauto plan": "check diff",
    "use msauto apply": "run play playbook deploy sync",
    "use msauto history, or msauto batch status": "status",
    "use msauto history": "log logs runs",
    "use msauto undo": "rollback revert",
    "use state: absent in a playbook, and msauto apply --allow-delete N": "destroy delete remove rm",
    "write it in a playbook: msauto doc asset": "add create update set edit rename move link marker segment restore",
    "nothing is imported: assets are found by title; msauto export writes playbooks of them": "import",
    "nothing is cached: msauto plan reads live state on each run": "refresh",
    "live state is compared on each run; to run a command again, write run: always": "taint untaint",
    "use an inventory for each environment (-i FILE), or -l HOST": "workspace env",
    "live state is read from the server; use msauto show assets": "state.list",
    "live state is read from the server; use msauto show asset TITLE": "state.show facts setup gather",
    "write the old title in the playbook: was: [OLD TITLE]": "state.mv",
    "remove the task: what no playbook names is not managed": "state.rm forget",
    "the ledger records runs, not live state; use msauto state copy": "state.pull state.push",
    "a lock ends with its run; msauto state check names who holds it": "force-unlock unlock",
    "use any formatter of YAML: playbooks have no form of their own": "fmt format",
    "modules are built in: msauto doc": "galaxy collection providers modules",
    "set server.auth in the inventory": "login logout",
    "use --format json": "output",
    "use msauto vars HOST for variables, msauto show asset TITLE for facts": "console",
    "use msauto show": "list ls get info",
    "use msauto vars HOST": "inventory hosts",
    "write msauto.toml: msauto schema settings": "config settings",
    "use msauto show databases": "ping",
    "use msauto validate, and msauto simulate to try playbooks": "test",
    "use msauto simulate": "server serve",
    "use msauto init": "new",
    "use msauto doc": "docs",
    "use msauto --help": "help",
    "use msauto --version": "version",
    "name a command that prints the secret under [secrets] of msauto.toml, or use env.NAME": "vault encrypt decrypt",
}
FLAGS: Final = {name: instead for instead, names in _FLAGS.items() for name in names.split()}
"""What to use instead of a flag."""
COMMANDS: Final = {name: instead for instead, names in _COMMANDS.items() for name in names.split()}
"""What to use instead of a command; ``state.list`` is a command of a group."""

_ONE_DASH: Final = re.compile(
    r"-(?P<name>target|var|var-file|out|auto-approve|destroy|refresh|refresh-only|lock|lock-timeout|parallelism|json"
    r"|input|no-color|detailed-exitcode|check|diff|limit|tags)(?P<value>=.*)?",
    re.DOTALL,
)


def one_dash_flag(arguments: Iterable[str]) -> str | None:
    """Return why a long flag with one dash is wrong, as Terraform writes it: -target=X would be -t with a tag arget=X.

    ``None`` if no argument before ``--`` is one.
    """
    for argument in arguments:
        if argument == "--":
            return None
        found = _ONE_DASH.fullmatch(argument)
        if found is not None:
            flag = f"--{found['name']}"
            remedy = FLAGS.get(flag, f"write it with two dashes: {flag}{found['value'] or ''}")
            return f"no such option: {argument}\n  → {remedy}"
    return None
