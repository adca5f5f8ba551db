"""What a program gives as keywords, as the command line gives it in flags."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msauto.api.inputs import PLAYS, Inputs, Tell, read_inputs
from msauto.documents.document import Document, given_document
from msauto.errors import MsautoError
from msauto.model.events import SILENT, Event, Observer
from msauto.model.plan import PlanOptions
from msauto.model.server import Transport
from msauto.secrets.sources import TAG, MarkedText

File = str | Path
Data = Mapping[str, Any]
Texts = str | Sequence[str]

_INVENTORY = "inventory"
_warn = logging.getLogger("msauto").warning


def inputs_of(
    playbooks: File | Sequence[File | Data] = (),
    *,
    inventory: File | Data | Sequence[File | Data] = (),
    server: str | None = None,
    extra_vars: Data | Texts = (),
    limit: str | None = None,
    tags: Texts = (),
    skip_tags: Texts = (),
    target: Texts = (),
    forget_pending: bool = False,
    undo: str | None = None,
    resume: str | None = None,
    forks: int | None = None,
    config: File | None = None,
    state_dir: File | None = None,
    on: str | None = None,
    transport: Transport | None = None,
    paths: Sequence[str] = (),
    tell: Tell = _warn,
) -> Inputs:
    """Return the inputs; raises :class:`InputError`. ``tell`` gets warnings and notes.

    The settings are those nearest to the first playbook, or of ``paths``.
    """
    if on is not None and transport is not None:
        raise MsautoError("on and transport cannot be given together", remedy="workers of a cluster use the network")
    given, inventories = _listed(playbooks), _listed(inventory)
    documents = dict(_documents(given, inventories))
    options = PlanOptions(
        playbooks=() if PLAYS in documents else _paths(given),
        undo=undo or "",
        resume=resume or "",
        inventories=_paths(inventories),
        server=server,
        config=None if config is None else os.fspath(config),
        extra_vars=_variables(extra_vars),
        limit=limit,
        tags=_split(tags),
        skip_tags=_split(skip_tags),
        targets=texts_of(target),
        forget_pending=forget_pending,
        now=datetime.now(UTC).isoformat(),
    )
    where = None if state_dir is None else os.fspath(state_dir)
    inputs = read_inputs(options, paths=paths, state_dir=where, forks=forks, on=on, tell=tell, documents=documents)
    return replace(inputs, transport=transport)


def _documents(playbooks: Sequence[File | Data], inventories: Sequence[File | Data]) -> Iterator[tuple[str, Document]]:
    """Yield what is given as data: the plays, which are one document, and each inventory."""
    if any(isinstance(each, Mapping) for each in playbooks):
        yield PLAYS, given_document(playbooks, PLAYS)
    for index, each in enumerate(inventories):
        if isinstance(each, Mapping):
            name = f"{_INVENTORY}[{index}]" if len(inventories) > 1 else _INVENTORY
            yield name, given_document(each, name)


def _listed(given: File | Data | Sequence[File | Data]) -> Sequence[File | Data]:
    return [given] if isinstance(given, str | Path | Mapping) else given


def _paths(given: Sequence[File | Data]) -> tuple[str, ...]:
    return tuple(os.fspath(each) for each in given if not isinstance(each, Mapping))


def texts_of(given: Texts) -> tuple[str, ...]:
    """Return one text or many as many."""
    return (given,) if isinstance(given, str) else tuple(given)


def _split(tags: Texts) -> tuple[str, ...]:
    return tuple(part.strip() for text in texts_of(tags) for part in text.split(",") if part.strip())


def _variables(given: Data | Texts) -> tuple[str, ...]:
    """Return variables as texts of ``-e``: a plan keeps them so."""
    if isinstance(given, Mapping):
        return (_flow(given_document(given, "extra_vars").data),) if given else ()
    return texts_of(given)


def _flow(value: Any) -> str:
    """Return data as YAML in one line, with its secrets tagged."""
    if isinstance(value, dict):
        return (
            f"{{{', '.join(f'{json.dumps(name, ensure_ascii=False)}: {_flow(each)}' for name, each in value.items())}}}"
        )
    if isinstance(value, list):
        return f"[{', '.join(map(_flow, value))}]"
    text = json.dumps(value, ensure_ascii=False)
    return f"{TAG} {text}" if isinstance(value, MarkedText) else text


@dataclass(frozen=True, slots=True)
class CallingObserver:
    """An observer that calls a function with each event; its errors are ignored."""

    call: Callable[[Event], object]

    def notify(self, event: Event) -> None:
        """Call the function."""
        with suppress(Exception):
            self.call(event)


def observing(call: Callable[[Event], object] | None) -> Observer:
    """Return the observer that calls a function, if there is one."""
    return SILENT if call is None else CallingObserver(call)


def check_named(inputs: Inputs) -> None:
    """Raise if nothing is to be planned."""
    if not (inputs.given.playbooks or inputs.documents.get(PLAYS) or inputs.given.undo or inputs.given.resume):
        raise MsautoError("no playbook is given", remedy="give the file of a playbook, its plays, or a saved plan")
