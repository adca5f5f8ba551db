"""The variables of a host as they are told to a person: winner, losers, where each is set; no secrets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from msauto.errors import InputError, SourceLocation
from msauto.playbook.files import Files
from msauto.playbook.resolve import ResolveOptions, open_hosts
from msauto.playbook.templates.environment import render_data
from msauto.playbook.variables.variables import TemplateScope, Variable
from msauto.playbook.yaml.document import nearest, outside_node
from msauto.secrets.names import USER_IN_URL, is_secret_name
from msauto.secrets.taint import HIDDEN, Secrets
from msauto.secrets.tainted_text import TaintedText

_BLOCK = "server"


@dataclass(frozen=True, slots=True)
class VariableDefinition:
    """One that says a variable. ``value`` is rendered, and ``error`` why it cannot be; the strongest comes first."""

    name: str
    value: Any
    level: str
    place: SourceLocation
    error: str = ""


def tell_variables(options: ResolveOptions, host: str, name: str | None = None) -> tuple[VariableDefinition, ...]:
    """Return the winners of a host in the order of their names; with a name, all who say it, the winner first.

    Values from the environment, what is marked as secret or was made with it, and variables that are called like
    secrets, are hidden. The ``server:`` block, which
    may hold secrets of any kind, is not told. Raises :class:`InputError` for an unknown host or name.
    """
    files = Files(mib=options.file_mib)
    with files.taint.found.redacted_errors():
        told = _all_told(replace(options, env=dict.fromkeys(options.env, HIDDEN)), files, host, name)
        secrets = files.taint.found.known()
        return tuple(
            replace(each, value=_hidden(each.value, secrets), error=secrets.redact(each.error)) for each in told
        )


def _all_told(options: ResolveOptions, files: Files, host: str, name: str | None) -> tuple[VariableDefinition, ...]:
    hosts = open_hosts(options, files)
    if host not in hosts.inventory.hosts:
        raise outside_node("HOST", host).error(f"there is no host {host!r}", nearest(host, hosts.inventory.hosts))
    return tuple(_told(hosts.scope(host, "."), name))


def _told(scope: TemplateScope, name: str | None) -> Iterator[VariableDefinition]:
    names = sorted(set(scope.variables) - {_BLOCK})
    if name is None:
        sourced = [variable for each in names if (variable := scope.variables.winner(each))]
    elif name in names:
        sourced = list(scope.variables.sourced(name))
    else:
        raise outside_node("NAME", name).error(f"no variable is called {name!r}", nearest(name, names))
    return (_tell(variable, scope) for variable in sourced)


def _tell(variable: Variable, scope: TemplateScope) -> VariableDefinition:
    value, error = None, ""
    try:
        marks = scope.surroundings.files.taint
        lost = len(marks.lost)
        value = _masked(variable.name, render_data(variable.value, scope, variable.node))
        value = HIDDEN if len(marks.lost) > lost else value
    except InputError as problem:
        error = problem.problems[0].message
    return VariableDefinition(variable.name, value, variable.level.words, variable.node.key_place, error)


def _hidden(value: Any, secrets: Secrets) -> Any:
    """Return a value without secrets, also those that somebody copied to where nothing is marked."""
    if isinstance(value, dict):
        return {secrets.redact(str(key)): _hidden(each, secrets) for key, each in value.items()}
    if isinstance(value, list):
        return [_hidden(each, secrets) for each in value]
    return secrets.redact(value) if isinstance(value, str) else value


def _masked(name: str, value: Any) -> Any:
    if isinstance(value, TaintedText):
        return HIDDEN
    if isinstance(value, dict):
        return {key: _masked(str(key), each) for key, each in value.items()}
    if isinstance(value, list):
        return [_masked(name, each) for each in value]
    if is_secret_name(name):
        return HIDDEN
    return USER_IN_URL.sub(HIDDEN, value) if isinstance(value, str) else value
