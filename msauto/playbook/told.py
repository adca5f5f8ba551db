"""The variables of a host as they are told to a person: winner, losers, where each is set; no secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from msauto.errors import InputError, Place
from msauto.playbook.document import Problems, nearest, said_outside
from msauto.playbook.files import Files
from msauto.playbook.resolve import Options, open_hosts
from msauto.playbook.templates import render_data
from msauto.playbook.variables import Scope, Variable

HIDDEN = "***"
_BLOCK = "server"
_SECRET = re.compile(r"(?i).*(pass(word|wd|phrase)?|secret|token|bearer|credential|api[_-]?key|private[_-]?key)s?")
_IN_URL = re.compile(r"(://)[^/@\s]*:[^/@\s]*@")


@dataclass(frozen=True, slots=True)
class Told:
    """One that says a variable. ``value`` is rendered, and ``error`` why it cannot be; the strongest comes first."""

    name: str
    value: Any
    level: str
    place: Place
    error: str = ""


def tell_variables(options: Options, host: str, name: str | None = None) -> tuple[Told, ...]:
    """Return the winners of a host in the order of their names; with a name, all who say it, the winner first.

    Values from the environment, and variables that are called like secrets, are hidden. The ``server:`` block, which
    may hold secrets of any kind, is not told. Raises :class:`InputError` for an unknown host or name.
    """
    problems = Problems()
    hosts = open_hosts(replace(options, env=dict.fromkeys(options.env, HIDDEN)), Files())
    problems.check()
    if host not in hosts.inventory.hosts:
        raise said_outside("HOST", host).error(f"there is no host {host!r}", nearest(host, hosts.inventory.hosts))
    return tuple(_told(hosts.scope(host, "."), name))


def _told(scope: Scope, name: str | None) -> Iterator[Told]:
    names = sorted(set(scope.variables) - {_BLOCK})
    if name is None:
        said = [variable for each in names if (variable := scope.variables.winner(each))]
    elif name in names:
        said = list(scope.variables.said(name))
    else:
        raise said_outside("NAME", name).error(f"no variable is called {name!r}", nearest(name, names))
    return (_tell(variable, scope) for variable in said)


def _tell(variable: Variable, scope: Scope) -> Told:
    value, error = None, ""
    try:
        value = _masked(variable.name, render_data(variable.value, scope, variable.spot))
    except InputError as problem:
        error = problem.problems[0].message
    return Told(variable.name, value, variable.level.words, variable.spot.key_place, error)


def _masked(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _masked(str(key), each) for key, each in value.items()}
    if isinstance(value, list):
        return [_masked(name, each) for each in value]
    if _SECRET.fullmatch(name):
        return HIDDEN
    return _IN_URL.sub(rf"\1{HIDDEN}@", value) if isinstance(value, str) else value
