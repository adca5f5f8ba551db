"""Flags and commands of Ansible and Terraform, and what does the same in msauto."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

_OFFLINE: Final = "use msauto plan {flag}, which needs no server"
_ALWAYS: Final = "a plan always shows the differences; remove it"
_LIMITS: Final = "use -y, and the flag that the refusal names, such as --allow-delete N"
_PLAN: Final = "use msauto plan: it writes nothing"
_AUTH: Final = "set server.auth in the inventory"
_LOGIN: Final = ("--ask-pass", "-k", "-u", "--user", "--private-key", "--key-file")
_BECOME: Final = ("-b", "--become", "-K", "--ask-become-pass", "--become-user", "--become-method")
_VAULT: Final = ("--ask-vault-pass", "--ask-vault-password", "--vault-password-file", "--vault-id", "-J")

FLAGS: Final[Mapping[str, str]] = {
    "--auto-approve": "use msauto apply --yes",
    "--approve": "use msauto apply --yes",
    "--no-input": "use msauto apply --yes",
    "--force": _LIMITS,
    "-C": "use msauto plan, or --check with apply",
    "--check": _PLAN,
    "--dry-run": _PLAN,
    "--diff": _ALWAYS,
    "-D": _ALWAYS,
    "--syntax-check": "use msauto validate",
    "--list-hosts": _OFFLINE.format(flag="--list-hosts"),
    "--list-tasks": _OFFLINE.format(flag="--list-tasks"),
    "--list-tags": _OFFLINE.format(flag="--list-tags"),
    "--start-at-task": "use --tags, or --target",
    "--step": "use --target to apply a part of the plan",
    "--flush-cache": "nothing is cached; remove it",
    "--force-handlers": "a handler that did not run is pending, and the next run plans it; remove it",
    "--inventory-file": "use -i FILE",
    "--json": "use --format json",
    "--html": "use --format html",
    "--output": "use --out FILE",
    "-o": "use --out FILE",
    "--var": "use -e NAME=VALUE",
    "--var-file": "use -e @FILE",
    "--destroy": "write state: absent, and allow it with --allow-delete N",
    "--refresh": "live state is always read; remove it",
    "--refresh-only": "use msauto plan",
    "--lock": "runs of the same database always exclude each other; see --lock-timeout",
    "--parallelism": "use --forks N",
    "--input": "use msauto apply --yes",
    "--quiet": "use --summary",
    "-q": "use --summary",
    **dict.fromkeys(_LOGIN, _AUTH),
    **dict.fromkeys(_BECOME, "remove it: msauto only uses HTTP"),
    **dict.fromkeys(_VAULT, "read secrets from the environment: env.NAME"),
}
"""What to use instead of a flag."""

COMMANDS: Final[Mapping[str, str]] = {
    "lint": "msauto validate",
    "check": "msauto plan",
    "diff": "msauto plan",
    "refresh": "msauto plan",
    "run": "msauto apply",
    "play": "msauto apply",
    "playbook": "msauto apply",
    "deploy": "msauto apply",
    "sync": "msauto apply",
    "status": "msauto history, or msauto batch status",
    "log": "msauto history",
    "logs": "msauto history",
    "runs": "msauto history",
    "rollback": "msauto undo",
    "revert": "msauto undo",
    "destroy": "state: absent in a playbook, and msauto apply --allow-delete N",
    "delete": "state: absent in a playbook, and msauto apply --allow-delete N",
    "import": "msauto export",
    "list": "msauto show",
    "ls": "msauto show",
    "get": "msauto show",
    "info": "msauto show",
    "inventory": "msauto vars HOST",
    "ping": "msauto show databases",
    "test": "msauto validate, and msauto simulate to try playbooks",
    "server": "msauto simulate",
    "serve": "msauto simulate",
    "new": "msauto init",
    "docs": "msauto doc",
    "help": "msauto --help",
    "version": "msauto --version",
    "vault": "values from the environment: env.NAME",
}
"""What to use instead of a command."""

_ONE_DASH: Final = re.compile(
    r"-(?P<name>target|var|var-file|out|auto-approve|destroy|refresh|refresh-only|lock|lock-timeout|parallelism|json"
    r"|input|no-color|detailed-exitcode|check|diff|limit|tags)(?P<value>=.*)?",
    re.DOTALL,
)


def one_dash_flag(arguments: Iterable[str]) -> str | None:
    """Return why a long flag with one dash is wrong, as Terraform writes it: -target=X would be -t with a tag arget=X.

    ``None`` if no argument before ``--`` is one.
    """
    for each in arguments:
        if each == "--":
            return None
        found = _ONE_DASH.fullmatch(each)
        if found is not None:
            flag = f"--{found['name']}"
            remedy = FLAGS.get(flag, f"write it with two dashes: {flag}{found['value'] or ''}")
            return f"no such option: {each}\n  → {remedy}"
    return None
