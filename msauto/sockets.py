"""The sockets that plugins fill: what msauto has beside its kernel is found here, by name, when it is asked for.

A plugin is a :class:`Plugin`: for each socket, the names that it brings and where each of them is. The plugins of
msauto are listed in :mod:`msauto.plugins`; others are the entry points of the group ``msauto.plugins``, which are
looked up only when a name is not among ours. Nothing is imported before it is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, get_args

from msauto.errors import MsautoError, did_you_mean

Socket = Literal[
    "commands",
    "workplaces",
    "stores",
    "timeline_formats",
    "functions",
    "report_forms",
    "lookups",
    "filters",
    "schemas",
    "file_models",
    "records",
]
SOCKETS: Final = get_args(Socket)
GROUP: Final = "msauto.plugins"
"""The group of the entry points; each leads to a :class:`Plugin`."""
Places = Mapping[str, str]
"""Names, and where each of them is."""
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_WHAT: Final[Mapping[Socket, str]] = {
    "commands": "command",
    "workplaces": "place to work on",
    "stores": "kind of ledger",
    "timeline_formats": "format of timelines",
    "functions": "function",
    "report_forms": "form of a report",
    "lookups": "lookup",
    "filters": "filter",
    "schemas": "schema",
    "file_models": "kind of file",
    "records": "kind of run",
}
"""What a name of each socket is called in a message."""


class PluginCommand(NamedTuple):
    """A command: the place of its click command, the section of the help that lists it, and its short help."""

    place: str
    section: str
    short_help: str


class Plugin(NamedTuple):
    """What a plugin brings. A place is ``module`` or ``module:object``.

    ``commands``: click commands. ``workplaces``, ``stores``: by the scheme of their URL. ``timeline_formats``: by the
    ending of the files. ``functions``: of the library. ``report_forms``: modules with ``render_plan`` and
    ``render_result``. ``lookups``, ``filters``: functions of templates. ``schemas``: functions that return a JSON
    Schema. ``file_models``: pydantic models of files, for ``validate`` and ``schema``. ``records``: modules that show
    runs of their own kind in ``history`` and ``report``.
    """

    name: str
    commands: Mapping[str, PluginCommand] = _NOTHING
    workplaces: Places = _NOTHING
    stores: Places = _NOTHING
    timeline_formats: Places = _NOTHING
    functions: Places = _NOTHING
    report_forms: Places = _NOTHING
    lookups: Places = _NOTHING
    filters: Places = _NOTHING
    schemas: Places = _NOTHING
    file_models: Places = _NOTHING
    records: Places = _NOTHING


@cache
def our_plugins() -> tuple[Plugin, ...]:
    """Return the plugins of msauto whose folders are installed, without importing what they bring."""
    return tuple(plugin for plugin in _table() if find_spec(f"msauto.plugins.{plugin.name}"))


def _table() -> tuple[Plugin, ...]:
    """Return all plugins of msauto, installed or not."""
    plugins: tuple[Plugin, ...] = getattr(import_module("msauto.plugins"), "PLUGINS", ())
    return plugins


@cache
def other_plugins() -> tuple[Plugin, ...]:
    """Return the plugins of other packages, by their entry points; raises :class:`MsautoError` for a broken one."""
    from importlib.metadata import entry_points

    plugins = []
    for entry in entry_points(group=GROUP):
        try:
            plugin = entry.load()
        except Exception as error:
            raise _broken(entry.name, f"{type(error).__name__}: {error}") from error
        if not isinstance(plugin, Plugin):
            raise _broken(entry.name, f"{entry.value} is not a msauto.sockets.Plugin")
        plugins.append(plugin)
    return tuple(plugins)


def _broken(name: str, why: str) -> MsautoError:
    return MsautoError(
        f"the plugin {name} cannot be loaded: {why}", remedy="repair it, or uninstall its package"
    )


def names_of(socket: Socket) -> Mapping[str, Any]:
    """Return what our plugins bring for a socket: names, and their places."""
    found: dict[str, Any] = {}
    for plugin in our_plugins():
        found |= getattr(plugin, socket)
    return found


def place_of(socket: Socket, name: str) -> Any:
    """Return the place of a name: of our plugins, else of others; ``None`` if no plugin brings it."""
    ours = names_of(socket)
    if name in ours:
        return ours[name]
    for plugin in other_plugins():
        brought: Mapping[str, Any] = getattr(plugin, socket)
        if name in brought:
            return brought[name]
    return None


def find(socket: Socket, name: str) -> Any:
    """Import what a plugin brings; raises :class:`MsautoError` that names what is missing."""
    place = place_of(socket, name)
    if place is None:
        raise missing(socket, name)
    return load_place(place)


def load_place(place: str) -> Any:
    """Import ``module``, or ``module:object``."""
    module, _, attribute = place.partition(":")
    found = import_module(module)
    if attribute:
        return getattr(found, attribute)
    return found


def missing(socket: Socket, name: str, known: Mapping[str, Any] = _NOTHING) -> MsautoError:
    """Return the error for a name that neither the kernel (``known``) nor a plugin brings."""
    message = f"{_WHAT[socket]} {name!r} not found"
    home = home_of(socket, name)
    if home:
        remedy = f"it comes with the plugin {home} of msauto, which is not installed: install msauto as a whole"
        return MsautoError(message, remedy=remedy)
    everything = [*known, *names_of(socket)]
    remedy = (
        did_you_mean(name, everything)
        or f"use one of {', '.join(everything)}, or install a plugin that brings it"
    )
    return MsautoError(message, remedy=remedy)


def home_of(socket: Socket, name: str) -> str:
    """Return the plugin of msauto that would bring a name; empty if none does."""
    for plugin in _table():
        if name in getattr(plugin, socket):
            return plugin.name
    return ""
