"""``msauto.toml``: defaults and limits (the contract, «Limits»)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import time
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, PlainValidator, WithJsonSchema

from msauto.errors import InputError, Problem, SourceLocation
from msauto.model.limits import Limits
from msauto.playbook.files import FILE_MIB, MOST_FILE_MIB, how_to_find
from msauto.playbook.schema.inventory import TimezoneName
from msauto.playbook.schema.strict_model import Model, key, need
from msauto.playbook.schema.validation import read_as
from msauto.playbook.schema.values import Between, Count, Flag, Name, Plain, Texts, as_list, sourced
from msauto.playbook.yaml.document import Document, SourceNode
from msauto.playbook.yaml.document import Path as DataPath
from msauto.secrets.redacted_lines import redact_lines

NAME = "msauto.toml"
MOST_FORKS = 512
Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
DAYS: tuple[Day, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def _clock(value: Any) -> time:
    """Read a time of day; its zone is said beside it (`tz`), where it follows the changes of the clocks."""
    try:
        read = value if isinstance(value, time) else time.fromisoformat(value if isinstance(value, str) else "")
    except ValueError as error:
        raise sourced("must be a time of day such as 18:00") from error
    if read.tzinfo is not None:
        raise sourced("must be a time of day without a zone, such as 18:00", "say the zone as tz")
    return read


_Clock = Annotated[time, PlainValidator(_clock), WithJsonSchema({"type": "string", "pattern": r"^\d\d:\d\d"})]


class LimitArgs(Model):
    """What a run may do without a person's word."""

    delete_assets: Plain[Count] = key("assets that a run may delete; default 0")
    remove_items: Plain[Count] = key("list items that exactly may remove in a run; default 50")
    requests: Plain[Count] = key("requests that a run may send; default no limit")
    protected: Plain[list[Name]] = key("globs of titles or folders that no run may delete or remove from")


def _some(days: list[Day]) -> list[Day]:
    if not days:
        raise sourced("names no day, so that it never holds", "leave `days` out for every day, or the freeze for none")
    return days


class FreezeArgs(Model):
    """When nothing may be changed."""

    days: Plain[Annotated[list[Day], AfterValidator(_some)]] = key(
        "days of the week, mon to sun; default all", json_schema_extra={"minItems": 1}
    )
    start: _Clock = need("from this time of day", alias="from")
    to: _Clock = need("to this time of day; before from: the next day")
    tz: TimezoneName = need("the time zone, such as Europe/Oslo")


class DownloadArgs(Model):
    """Where downloads may be written to."""

    folders: Plain[list[Name]] = key("folders outside the repository that dest may name, beside this file")


class StateArgs(Model):
    """The ledger."""

    require: Plain[Flag] = key("refuse an empty ledger: for containers that forgot to mount it")
    keep_runs: Plain[Count] = key("runs that the ledger keeps; default all")
    keep_days: Plain[Count] = key("days for which the ledger keeps its runs; default for good")


class LookupArgs(Model):
    """What lookup() may read beside the repository of the playbooks."""

    folders: Plain[list[Name]] = key("folders outside the repository that lookup() may read, beside this file")


class SettingsArgs(Model):
    """Defaults and limits of a repository of playbooks."""

    inventory: Plain[Texts] = key("inventories, beside this file")
    forks: Plain[Annotated[int, Between(1, MOST_FORKS)]] = key("targets at a time, 1 to 512; default 8")
    state_dir: Plain[Name] = key("where the ledger is kept, beside this file")
    file_mib: Plain[Annotated[int, Between(1, MOST_FILE_MIB)]] = key(
        "the largest playbook, inventory or other file that is read, in MiB, 1 to 4096; default 64"
    )
    tz: Plain[TimezoneName] = key("the time zone of --window, such as Europe/Oslo; default this machine's")
    limits: Plain[LimitArgs] = key("what a run may do without a person's word")
    protected: Plain[list[Name]] = key("as limits.protected")
    freeze: Plain[list[FreezeArgs]] = key("when nothing may be changed")
    state: Plain[StateArgs] = key("the ledger")
    lookup: Plain[LookupArgs] = key("what lookup() may read beside the repository")
    download: Plain[DownloadArgs] = key("where downloads may be written to beside the repository")


@dataclass(frozen=True, slots=True)
class Freeze:
    """A time of the week in which nothing is changed; ``end`` before ``start`` is on the next day."""

    days: tuple[Day, ...]
    start: time
    end: time
    timezone: str


@dataclass(frozen=True, slots=True)
class Settings:
    """What ``msauto.toml`` says; paths are ready to open. Without a file, the defaults."""

    file: str | None = None
    inventories: tuple[str, ...] = ()
    forks: int | None = None
    state_dir: str | None = None
    timezone: str | None = None
    limits: Limits = field(default_factory=Limits)
    freezes: tuple[Freeze, ...] = ()
    require_state: bool = False
    keep_runs: int | None = None
    keep_days: int | None = None
    lookup_folders: tuple[str, ...] = ()
    download_folders: tuple[str, ...] = ()
    file_mib: int = FILE_MIB


def load_settings(path: str | Path | None, near: str | Path = ".") -> Settings:
    """Read ``path``, or else ``msauto.toml`` in the folder ``near``; raises :class:`InputError`."""
    if path is None:
        path = Path(near) / NAME
        if not path.is_file():
            return Settings()
    document = _read(Path(path))
    args = read_as(SettingsArgs, document.data, SourceNode(document))
    return _settings(args, Path(path))


def _settings(args: SettingsArgs, path: Path) -> Settings:
    limits = args.limits or LimitArgs()
    default = Limits()
    return Settings(
        file=str(path),
        inventories=tuple(str(path.parent / each) for each in as_list(args.inventory or [])),
        forks=args.forks,
        state_dir=str(path.parent / Path(args.state_dir).expanduser()) if args.state_dir else None,
        timezone=args.tz,
        limits=Limits(
            delete_assets=default.delete_assets if limits.delete_assets is None else limits.delete_assets,
            remove_items=default.remove_items if limits.remove_items is None else limits.remove_items,
            requests=limits.requests,
            protected=(*(args.protected or ()), *(limits.protected or ())),
        ),
        freezes=tuple(Freeze(tuple(each.days or DAYS), each.start, each.to, each.tz) for each in args.freeze or ()),
        require_state=bool(args.state and args.state.require),
        keep_runs=args.state.keep_runs if args.state else None,
        keep_days=args.state.keep_days if args.state else None,
        lookup_folders=_folders(args.lookup, path),
        download_folders=_folders(args.download, path),
        file_mib=args.file_mib or FILE_MIB,
    )


def _folders(args: LookupArgs | DownloadArgs | None, path: Path) -> tuple[str, ...]:
    named = (args.folders if args else None) or []
    return tuple(str(path.parent / Path(each).expanduser()) for each in named)


def _read(path: Path) -> Document:
    file = str(path)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        remedy = how_to_find(file) if isinstance(error, FileNotFoundError) else "see that it can be read"
        raise InputError([Problem(f"cannot be read: {error.strerror}", SourceLocation(file), remedy)]) from error
    except UnicodeDecodeError as error:
        raise InputError([Problem("the file is not UTF-8", SourceLocation(file), "save it as UTF-8")]) from error
    lines = tuple(text.splitlines())
    return Document(file, _data(text, file, lines), *_places(file, lines), redact_lines(lines))


_LONG_NUMBER = re.compile(r"(?<![\w.])[+-]?\d[\d_]{999,}")


def _data(text: str, file: str, lines: tuple[str, ...]) -> dict[str, Any]:
    try:
        return tomllib.loads(text.replace("\r\n", "\n"))
    except RecursionError as error:
        raise InputError(
            [Problem("this is no TOML: it is nested too deeply", SourceLocation(file), "nest it less")]
        ) from error
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        end = SourceLocation(file, max(len(lines), 1), len(lines[-1]) + 1 if lines else 1)
        place = SourceLocation(file, int(found[1]), int(found[2])) if found else end
        message = re.sub(r" \(at .*\)$", "", str(error))
        raise InputError(
            [Document(file, lines=redact_lines(lines)).problem(f"this is no TOML: {message}", place)]
        ) from error
    except ValueError as error:  # a number of more digits than Python reads; tomllib tells no place
        numbers = (SourceLocation(file, number, at.start() + 1) for number, at in _long_numbers(lines))
        place = next(numbers, SourceLocation(file))
        raise InputError(
            [Document(file, lines=redact_lines(lines)).problem("a number with too many digits", place)]
        ) from error


def _long_numbers(lines: tuple[str, ...]) -> Iterator[tuple[int, re.Match[str]]]:
    for number, line in enumerate(lines, 1):
        if found := _LONG_NUMBER.search(line):
            yield number, found


_HEADER = re.compile(r"\s*(\[\[?)\s*([\w.-]+)\s*\]")
_PAIR = re.compile(r"\s*([\w-]+)\s*=\s*")


def _places(file: str, lines: tuple[str, ...]) -> tuple[dict[DataPath, SourceLocation], dict[DataPath, SourceLocation]]:
    """Find keys by their lines, for ``tomllib`` tells no places; keys of inline tables fall back to the table."""
    values: dict[DataPath, SourceLocation] = {(): SourceLocation(file, 1, 1)}
    keys: dict[DataPath, SourceLocation] = {}
    table: DataPath = ()
    counts: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        if header := _HEADER.match(line):
            table = tuple(header[2].split("."))
            if header[1] == "[[":
                counts[header[2]] = counts.get(header[2], -1) + 1
                table = (*table, counts[header[2]])
            values[table] = keys[table] = SourceLocation(file, number, header.start(2) + 1)
        elif pair := _PAIR.match(line):
            keys[(*table, pair[1])] = SourceLocation(file, number, pair.start(1) + 1)
            values[(*table, pair[1])] = SourceLocation(file, number, pair.end() + 1)
    return values, keys
