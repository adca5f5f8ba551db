"""What a program gives as keywords, as the command line gives it in flags."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

from msgspec import Struct

from msauto.api.inputs import PLAYS, Inputs, Tell, ledger_place, state_folder
from msauto.documents.document import Document, given_document
from msauto.errors import MsautoError
from msauto.model.events import SILENT, Event, Observer
from msauto.model.plan import PlanOptions
from msauto.model.server import Transport, is_transport
from msauto.playbook.settings import load_settings

File = str | Path
Data = Mapping[str, Any]
Texts = str | Sequence[str]

P = ParamSpec("P")
R = TypeVar("R")

_INVENTORY = "inventory"


def _warn(message: str) -> None:
    import logging  # the command line has its own

    logging.getLogger("msauto").warning(message)


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
    beside: str = "",
    now: datetime | None = None,
    tell: Tell = _warn,
) -> Inputs:
    """Return the inputs; raises :class:`InputError`. ``tell`` gets warnings and notes.

    The settings are those nearest to the first playbook (that of a plan file), or of ``paths``, else to ``beside``.
    """
    if on is not None and transport is not None:
        raise MsautoError("on and transport cannot be given together", remedy="workers of a cluster use the network")
    plays, inventories = _listed(playbooks), _listed(inventory)
    documents = dict(_documents(plays, inventories))
    given = PlanOptions(
        playbooks=() if PLAYS in documents else _paths(plays), undo=undo or "", resume=resume or "",
        inventories=_paths(inventories), server=server, config=None if config is None else os.fspath(config),
        extra_vars=_variables(extra_vars), limit=limit, tags=_split(tags), skip_tags=_split(skip_tags),
        targets=texts_of(target), forget_pending=forget_pending, now=(now or datetime.now(UTC)).isoformat(),
    )  # fmt: skip
    typed, agreed, base = given, None, Path()
    if given.playbooks:
        from msauto.api.saved_plans import is_plan_file, open_plan_file

        if is_plan_file(given.playbooks[0]):
            agreed, given, base = open_plan_file(given.playbooks, given)
    first = map(Path, filter(None, (*(*given.playbooks, *paths)[:1], beside)))
    settings = load_settings(given.config, *(path if os.path.isdir(path) else path.parent for path in first))  # noqa: PTH112 - no error for a bad name
    where = None if state_dir is None else os.fspath(state_dir)
    return Inputs(
        given, settings, ledger_place(where, settings), state_folder(where, settings), typed, forks, agreed, base,
        documents=documents, transport=transport, on=on, tell=tell,
    )  # fmt: skip


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
        from msauto.documents.writer import flow  # with pydantic, which a list of runs does not need

        return (flow(given_document(given, "extra_vars").data),) if given else ()
    return texts_of(given)


class CallingObserver(Struct, frozen=True):
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


# Wrong types ---------------------------------------------------------------------------------------------------------


def checked(function: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Coroutine[Any, Any, R]]:
    """Return a function that refuses values of a wrong type by the name of the keyword, before it begins.

    A text in place of true or false would be true, and an empty list of targets would select all of them.
    """
    parameters = inspect.signature(function).parameters

    @functools.wraps(function)
    async def call(*args: P.args, **kwargs: P.kwargs) -> R:
        work = function(*args, **kwargs)  # raises TypeError for unknown names, as any function
        try:
            for name, value in {**dict(zip(parameters, args, strict=False)), **kwargs}.items():
                if value is not None or parameters[name].default is not None:
                    _check(name, value, f"see help(msauto.{function.__name__})")
        except MsautoError:
            work.close()
            raise
        return await work

    return call


def _check(name: str, value: object, remedy: str) -> None:
    fits, form = _FORMS.get(name, (None, ""))
    if fits is not None and not fits(value):
        shown = repr(value) if not value or isinstance(value, int | float) else f"of type {type(value).__name__}"
        raise MsautoError(f"{name} must be {form}, not {shown}", remedy=remedy)
    if name in _SELECTING and not isinstance(value, str) and not value:
        raise MsautoError(f"{name} is empty and selects nothing", remedy=f"leave out {name} to select everything")


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_path(value: object) -> bool:
    return isinstance(value, str | os.PathLike) and bool(str(value))


def _is_data(value: object) -> bool:
    return isinstance(value, Mapping)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _is_count(value: object) -> bool:
    return _is_number(value) and isinstance(value, int)


def _is_texts(value: object) -> bool:
    return isinstance(value, str) or _each(value, lambda each: isinstance(each, str))


def _is_files_or_data(value: object) -> bool:
    return _is_path(value) or _is_data(value) or _each(value, lambda each: _is_path(each) or _is_data(each))


def _is_playbooks(value: object) -> bool:
    # Data has its own messages, with places.
    return _is_files_or_data(value) or (isinstance(value, Sequence) and any(map(_is_data, value)))


def _each(value: object, fits: Callable[[object], bool]) -> bool:
    return isinstance(value, Collection) and not isinstance(value, Mapping | bytes | str) and all(map(fits, value))


def _is_loaded(value: object) -> bool:
    from msauto.api.loading import Loaded  # the engine, which no command needs to check its flags

    return isinstance(value, Loaded)


def _is_plan(value: object) -> bool:
    from msauto.api.values import RunPlan

    return _is_loaded(value) or isinstance(value, RunPlan)


_ROWS: Final[Iterable[tuple[str, Callable[[Any], bool], str]]] = (
    ("playbooks", _is_playbooks, "the path of a file, or a list of paths or of plays"),
    ("inventory", _is_files_or_data, "a path, data, or a list of these"),
    ("extra_vars", lambda value: _is_data(value) or _is_texts(value), "a mapping, or texts as of -e"),
    ("limit format origin window override_freeze", lambda value: isinstance(value, str), "a text"),
    ("server database on run undo resume batch", _is_name, "a text"),
    ("tags skip_tags target title folder channel", _is_texts, "a text, or a list of texts"),
    ("config state_dir out", _is_path, "a path"),
    ("forget_pending keep_going recursive links force all", lambda value: isinstance(value, bool), "True or False"),
    ("allow_delete allow_remove allow_requests", _is_count, "a whole number"),
    ("forks", lambda value: _is_count(value) and value >= 1, "a whole number of at least 1"),
    ("lock_timeout", _is_number, "a number of seconds"),
    ("since", lambda value: isinstance(value, timedelta), "a timedelta"),
    ("observer", callable, "a function"),
    ("transport", is_transport, "a transport of httpx2"),
    ("play", _is_loaded, "what msauto.load returned"),
    ("plan", _is_plan, "what msauto.plan or msauto.load returned"),
)
_FORMS: Final = {name: (fits, form) for names, fits, form in _ROWS for name in names.split()}
"""What a keyword takes: a check of the value, and the words for it."""
_SELECTING: Final = frozenset({"tags", "target", "title", "folder", "channel"})
