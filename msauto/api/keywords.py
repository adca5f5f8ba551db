"""What a program gives as keywords, as the command line gives it in flags."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar

from msauto.api.inputs import PLAYS, Inputs, Tell, ledger_place
from msauto.api.options import OPTIONS
from msauto.documents.document import Document, given_document
from msauto.errors import MsautoError
from msauto.model.plan import PlanOptions
from msauto.model.server import is_transport
from msauto.playbook.settings import load_settings
from msauto.playbook.settings_file import state_folder
from msauto.secrets.commands import VARIABLE, SecretCommands

File = str | Path
Data = Mapping[str, Any]
Texts = str | Sequence[str]

P = ParamSpec("P")
R = TypeVar("R")


def _warn(message: str) -> None:
    import logging  # the command line has its own

    logging.getLogger("msauto").warning(message)


def inputs_of(
    playbooks: File | Sequence[File | Data] = (),
    *,
    paths: Sequence[str] = (),
    beside: str = "",
    now: datetime | None = None,
    tell: Tell = _warn,
    **given: Any,
) -> Inputs:
    """Return the inputs that options give, by their keywords; other options are left to the caller.

    Raises :class:`InputError`. ``tell`` gets warnings and notes. The settings are those nearest to the first playbook
    (that of a plan file), or of ``paths``, else to ``beside``.
    """
    on, transport = given.get("on"), given.get("transport")
    if on is not None and transport is not None:
        raise MsautoError(
            "on and transport cannot be given together",
            remedy="workers of a cluster use the network",
        )
    plays, inventories = _listed(playbooks), _listed(given.get("inventory", ()))
    documents = dict(_documents(plays, inventories))
    files = () if PLAYS in documents else _paths(plays)
    typed = options = PlanOptions(
        playbooks=files, now=(now or datetime.now(UTC)).isoformat(), **_kept(given)
    )
    agreed, base = None, Path()
    if files:
        from msauto.api.saved_plans import is_plan_file, open_plan_file

        if is_plan_file(files[0]):
            agreed, options, base = open_plan_file(files, typed)
    first = [*options.playbooks, *paths][:1]
    starts = [_folder_of(path) for path in (*first, beside) if path]
    settings = load_settings(options.config, *starts)
    state_dir = given.get("state_dir")
    where = None if state_dir is None else os.fspath(state_dir)
    allowed = bool(given.get("secret_commands")) or os.environ.get(VARIABLE) == "1"
    return Inputs(
        options,
        settings,
        ledger_place(where, settings),
        state_folder(where, settings.state_dir),
        typed,
        given.get("forks"),
        agreed,
        base,
        documents=documents,
        transport=transport,
        secrets=SecretCommands(settings.secrets, allowed),
        on=on,
        tell=tell,
    )


def _kept(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that a plan keeps, as it keeps them."""
    kept = {}
    for name, value in given.items():
        if value is not None:
            option = OPTIONS[name]
            if option.field:
                kept[option.field] = KINDS[option.kind].kept(value)
    return kept


def _folder_of(path: str) -> Path:
    return Path(path) if os.path.isdir(path) else Path(path).parent  # noqa: PTH112 - no error for a bad name


def _documents(
    playbooks: Sequence[File | Data], inventories: Sequence[File | Data]
) -> Iterator[tuple[str, Document]]:
    """Yield what is given as data: the plays, which are one document, and each inventory."""
    if any(map(_is_data, playbooks)):
        yield PLAYS, given_document(playbooks, PLAYS)
    for index, inventory in enumerate(inventories):
        if isinstance(inventory, Mapping):
            name = f"inventory[{index}]" if len(inventories) > 1 else "inventory"
            yield name, given_document(inventory, name)


def _listed(given: File | Data | Sequence[File | Data]) -> Sequence[File | Data]:
    return [given] if isinstance(given, str | Path | Mapping) else given


def _paths(given: Sequence[File | Data]) -> tuple[str, ...]:
    return tuple(os.fspath(file) for file in given if not isinstance(file, Mapping))


def texts_of(given: Texts) -> tuple[str, ...]:
    """Return one text or many as many."""
    return (given,) if isinstance(given, str) else tuple(given)


def _variables(given: Data | Texts) -> tuple[str, ...]:
    """Return variables as texts of ``-e``: a plan keeps them so."""
    if not isinstance(given, Mapping):
        return texts_of(given)
    if not given:
        return ()
    from msauto.documents.writer import flow  # with pydantic, which a list of runs does not need

    return (flow(given_document(given, "extra_vars").data),)


def _tags(given: Texts) -> tuple[str, ...]:
    tags = map(str.strip, ",".join(texts_of(given)).split(","))
    return tuple(filter(None, tags))


def check_named(inputs: Inputs) -> None:
    """Raise if nothing is to be planned."""
    if not (inputs.given.playbooks or inputs.documents.get(PLAYS) or inputs.given.undo):
        raise MsautoError(
            "no playbook is given", remedy="give the file of a playbook, its plays, or a saved plan"
        )


# Wrong types ---------------------------------------------------------------------------------------------------------


def checked(function: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Coroutine[Any, Any, R]]:
    """Return a function that refuses values of a wrong type by the name of the keyword, before it begins.

    A text in place of true or false would be true, and an empty list of targets would select all of them.
    """
    parameters = inspect.signature(function).parameters

    @functools.wraps(function)
    async def call(*args: P.args, **kwargs: P.kwargs) -> R:
        work = function(*args, **kwargs)  # raises TypeError for unknown names, as any function
        values = dict(zip(parameters, args, strict=False)) | kwargs
        try:
            for name, value in values.items():
                if value is not None or parameters[name].default is not None:
                    _check(name, value, f"see help(msauto.{function.__name__})")
        except MsautoError:
            work.close()
            raise
        return await work

    return call


def _check(name: str, value: object, remedy: str) -> None:
    option = OPTIONS[name]
    kind = KINDS[option.kind]
    if not kind.fits(value):
        shown = f"of type {type(value).__name__}"
        if not value or isinstance(value, int | float):
            shown = repr(value)
        raise MsautoError(f"{name} must be {kind.words}, not {shown}", remedy=remedy)
    is_empty = not value and not isinstance(value, str)
    if option.selects and is_empty:
        remedy = f"leave out {name} to select everything"
        raise MsautoError(f"{name} is empty and selects nothing", remedy=remedy)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


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
    return _is_text(value) or _each(value, _is_text)


def _is_file_or_data(value: object) -> bool:
    return _is_path(value) or _is_data(value)


def _is_files_or_data(value: object) -> bool:
    return _is_file_or_data(value) or _each(value, _is_file_or_data)


def _is_playbooks(value: object) -> bool:
    # Data has its own messages, with places.
    return _is_files_or_data(value) or (isinstance(value, Sequence) and any(map(_is_data, value)))


def _each(value: object, fits: Callable[[object], bool]) -> bool:
    if isinstance(value, Mapping | bytes | str):
        return False
    return isinstance(value, Collection) and all(map(fits, value))


def _is_loaded(value: object) -> bool:
    from msauto.api.loading import Loaded  # the engine, which no command needs to check its flags

    return isinstance(value, Loaded)


def _is_plan(value: object) -> bool:
    from msauto.api.values import RunPlan

    return _is_loaded(value) or isinstance(value, RunPlan)


class KindOfValue(NamedTuple):
    """What an option takes: a check, the words for it, and how a saved plan keeps a value of it."""

    fits: Callable[[Any], bool]
    words: str
    kept: Callable[[Any], Any] = lambda value: value


KINDS: Final[Mapping[str, KindOfValue]] = {
    "playbooks": KindOfValue(_is_playbooks, "the path of a file, or a list of paths or of plays"),
    "sources": KindOfValue(
        _is_files_or_data, "a path, data, or a list of these", lambda value: _paths(_listed(value))
    ),
    "variables": KindOfValue(
        lambda value: _is_data(value) or _is_texts(value),
        "a mapping, or texts as of -e",
        _variables,
    ),
    "text": KindOfValue(_is_text, "a text"),
    "name": KindOfValue(_is_name, "a text"),
    "hours": KindOfValue(_is_text, "a text"),
    "cluster": KindOfValue(_is_name, "a text"),
    "texts": KindOfValue(_is_texts, "a text, or a list of texts", texts_of),
    "tags": KindOfValue(_is_texts, "a text, or a list of texts", _tags),
    "path": KindOfValue(_is_path, "a path", os.fspath),
    "switch": KindOfValue(lambda value: isinstance(value, bool), "True or False"),
    "count": KindOfValue(_is_count, "a whole number"),
    "forks": KindOfValue(
        lambda value: _is_count(value) and value >= 1, "a whole number of at least 1"
    ),
    "seconds": KindOfValue(_is_number, "a number of seconds"),
    "age": KindOfValue(lambda value: isinstance(value, timedelta), "a timedelta"),
    "observer": KindOfValue(callable, "a function"),
    "transport": KindOfValue(is_transport, "a transport of httpx2"),
    "loaded": KindOfValue(_is_loaded, "what msauto.load returned"),
    "plan": KindOfValue(_is_plan, "what msauto.plan or msauto.load returned"),
}
"""What options take."""
