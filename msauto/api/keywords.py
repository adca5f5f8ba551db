"""What a program gives as keywords, as the command line gives it in flags."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar

from msauto.api.inputs import PLAYS, Inputs, Tell
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
    documents = _documents(plays, inventories)
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
    state = state_folder(where, settings.state_dir)
    allowed = bool(given.get("secret_commands")) or os.environ.get(VARIABLE) == "1"
    return Inputs(
        options,
        settings,
        settings.ledger_url or state,
        state,
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
        field = OPTIONS[name].field
        if field and value not in (None, (), {}):
            kept[field] = KINDS[OPTIONS[name].kind].kept(value)
    return kept


def _folder_of(path: str) -> Path:
    return Path(path) if os.path.isdir(path) else Path(path).parent  # noqa: PTH112 - no error for a bad name


def _documents(
    playbooks: Sequence[File | Data], inventories: Sequence[File | Data]
) -> dict[str, Document]:
    """Return what is given as data: the plays, which are one document, and each inventory."""
    documents: dict[str, Document] = {}
    if any(isinstance(play, Mapping) for play in playbooks):
        documents[PLAYS] = given_document(playbooks, PLAYS)
    for index, inventory in enumerate(inventories):
        if isinstance(inventory, Mapping):
            name = f"inventory[{index}]" if len(inventories) > 1 else "inventory"
            documents[name] = given_document(inventory, name)
    return documents


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
    from msauto.documents.writer import flow  # with pydantic, which a list of runs does not need

    return (flow(given_document(given, "extra_vars").data),)


def _tags(given: Texts) -> tuple[str, ...]:
    tags = map(str.strip, ",".join(texts_of(given)).split(","))
    return tuple(filter(None, tags))


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


def _check(name: str, value: Any, remedy: str) -> None:
    option = OPTIONS[name]
    kind = KINDS[option.kind]
    is_list = isinstance(value, Collection) and not isinstance(value, Mapping | bytes)
    if isinstance(value, kind.classes):
        is_right = kind.accepts(value)
    elif is_list and kind.items:
        is_right = all(isinstance(item, kind.items) and kind.accepts(item) for item in value)
    else:
        is_right = False
    if not is_right:
        shown = f"of type {type(value).__name__}"
        if not value or isinstance(value, int | float):
            shown = repr(value)
        raise MsautoError(f"{name} must be {kind.words}, not {shown}", remedy=remedy)
    is_empty = not value and not isinstance(value, str)
    if option.selects and is_empty:
        remedy = f"leave out {name} to select everything"
        raise MsautoError(f"{name} is empty and selects nothing", remedy=remedy)


def _are_playbooks(value: Any) -> bool:
    if isinstance(value, _SOURCE):
        return bool(str(value))
    if isinstance(value, bytes):
        return False
    if any(isinstance(play, Mapping) for play in value):
        return True  # data has its own messages, with places
    return all(isinstance(file, str | os.PathLike) and str(file) for file in value)


def _is_loaded(value: object) -> bool:
    from msauto.api.loading import Loaded  # the engine, which no command needs to check its flags

    return isinstance(value, Loaded)


def _is_plan(value: object) -> bool:
    from msauto.api.values import RunPlan

    return isinstance(value, RunPlan) or _is_loaded(value)


class KindOfValue(NamedTuple):
    """What an option takes: a value of the classes, or a list of ``items``, each of which the function ``accepts``.

    ``words`` name it in messages, and ``kept`` returns what a saved plan keeps of a value.
    """

    words: str
    classes: tuple[type, ...] = (object,)
    accepts: Callable[[Any], bool] = lambda _: True
    items: tuple[type, ...] = ()
    kept: Callable[[Any], Any] = lambda value: value


def _is_amount(value: float) -> bool:
    return value >= 0 and not isinstance(value, bool)


_TEXT: Final = KindOfValue("a text", (str,))
_NAME: Final = KindOfValue("a text", (str,), lambda value: bool(value.strip()))
_TEXTS: Final = KindOfValue("a text, or a list of texts", (str,), items=(str,), kept=texts_of)
_SOURCE: Final = (str, os.PathLike, Mapping)
KINDS: Final[Mapping[str, KindOfValue]] = {
    "playbooks": KindOfValue(
        "the path of a file, or a list of paths or of plays",
        (*_SOURCE, Collection),
        _are_playbooks,
    ),
    "sources": KindOfValue(
        "a path, data, or a list of these",
        _SOURCE,
        lambda value: bool(str(value)),
        _SOURCE,
        lambda value: _paths(_listed(value)),
    ),
    "variables": KindOfValue(
        "a mapping, or texts as of -e", (Mapping, str), items=(str,), kept=_variables
    ),
    "text": _TEXT,
    "name": _NAME,
    "hours": _TEXT,
    "cluster": _NAME,
    "texts": _TEXTS,
    "tags": _TEXTS._replace(kept=_tags),
    "path": KindOfValue(
        "a path", (str, os.PathLike), lambda value: bool(str(value)), kept=os.fspath
    ),
    "switch": KindOfValue("True or False", (bool,)),
    "count": KindOfValue("a whole number", (int,), _is_amount),
    "forks": KindOfValue(
        "a whole number of at least 1", (int,), lambda value: _is_amount(value) and value >= 1
    ),
    "seconds": KindOfValue("a number of seconds", (int, float), _is_amount),
    "age": KindOfValue("a timedelta", (timedelta,)),
    "observer": KindOfValue("a function", accepts=callable),
    "transport": KindOfValue("a transport of httpx2", accepts=is_transport),
    "loaded": KindOfValue("what msauto.load returned", accepts=_is_loaded),
    "plan": KindOfValue("what msauto.plan or msauto.load returned", accepts=_is_plan),
}
"""What options take."""
