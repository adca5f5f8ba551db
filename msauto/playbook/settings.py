"""``msauto.toml``: defaults and limits (settings, «How limits work»)."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from msgspec import UNSET, Struct, UnsetType, field, structs

from msauto.documents.document import Document, SourceNode, outside_node
from msauto.documents.document import Path as DataPath
from msauto.documents.scalars import BOOLEAN_WORDS
from msauto.errors import InputError, Problem, SourceLocation
from msauto.model.desired import OutsidePolicy
from msauto.model.ledger_url import LedgerUrl, PasswordSource
from msauto.model.plan import InputHash, Limits
from msauto.playbook.change_windows import DAYS, DatedFreeze, Freeze
from msauto.playbook.input_files import Files
from msauto.playbook.settings_file import beside, settings_above
from msauto.secrets.commands import SecretCommand
from msauto.secrets.redaction import redact_lines

if TYPE_CHECKING:
    from msauto.playbook.schema.settings import DatedFreezeArgs, FreezeArgs, SettingsArgs, StateArgs


_KEPT_DAYS: Final = 400
"""For how long the ledger keeps runs, if no key sets it: a year, and the season before."""


class Settings(Struct, frozen=True):
    """The values of ``msauto.toml``, with paths ready to open; without a file, the defaults."""

    file: str | None = None
    sha256: str = ""
    playbooks: tuple[str, ...] = ()
    inventories: tuple[str, ...] = ()
    forks: int | None = None
    state_dir: str | None = None
    ledger_url: LedgerUrl | None = None
    timezone: str | None = None
    limits: Limits = field(default_factory=Limits)
    freezes: tuple[Freeze | DatedFreeze, ...] = ()
    require_state: bool = False
    keep_runs: int | None = None
    keep_days: int | None = None
    role_folders: tuple[str, ...] = ()
    lookup_folders: tuple[str, ...] = ()
    download_folders: tuple[str, ...] = ()
    download_endings: tuple[str, ...] = ()
    secrets: Mapping[str, SecretCommand] = {}
    outside: OutsidePolicy | UnsetType = UNSET

    @property
    def used(self) -> InputHash | None:
        """The file as plans name it."""
        return None if self.file is None else InputHash(self.file, self.sha256)


def load_settings(path: str | Path | None, *starts: Path) -> Settings:
    """Read ``path``, or else what :func:`find_settings` finds; raises :class:`InputError`."""
    file = find_settings(*starts) if path is None else Path(path)
    if file is None:
        return Settings()
    from msauto.documents.value_types import as_list
    from msauto.playbook.schema import settings as schema
    from msauto.playbook.schema.schema_errors import read_as

    def all_beside(names: list[str] | None) -> tuple[str, ...]:
        return tuple(beside(file, name) for name in names or ())

    def all_in_folder(names: str | list[str] | None) -> tuple[str, ...]:
        return tuple(str(file.parent / name) for name in as_list(names or []))

    content = Files().read(str(file))
    node = SourceNode(_document(content, str(file)))
    args = read_as(schema.SettingsArgs, node.document.data, node)
    plan = args.plan or schema.PlanArgs()
    state = args.state or schema.StateArgs()
    roles = args.roles or schema.RolesArgs()
    lookup = args.lookup or schema.LookupArgs()
    download = args.download or schema.DownloadArgs()
    limits = args.limits or schema.LimitArgs()
    role_folders = all_beside(as_list(roles.path or []))
    freezes: list[Freeze | DatedFreeze] = []
    for index, freeze in enumerate(args.freeze or ()):
        freezes.append(_freeze(freeze, args.tz, node.child("freeze", index)))
    keep_days = state.keep_days
    if state.keep_runs is None and keep_days is None:
        keep_days = _KEPT_DAYS
    return Settings(
        file=str(file),
        sha256=hashlib.sha256(content).hexdigest(),
        playbooks=all_in_folder(args.playbook),
        inventories=all_in_folder(args.inventory),
        forks=args.forks,
        state_dir=beside(file, args.state_dir) if args.state_dir else None,
        ledger_url=_ledger_url(file, state),
        timezone=args.tz,
        limits=Limits(
            **limits.model_dump(exclude_none=True),
            protected=tuple(args.protected or ()),
            read_only=tuple(args.read_only or ()),
        ),
        freezes=tuple(freezes),
        require_state=bool(state.require),
        keep_runs=state.keep_runs,
        keep_days=keep_days,
        role_folders=role_folders,
        lookup_folders=(*role_folders, *all_beside(lookup.folders)),
        download_folders=all_beside(download.folders),
        download_endings=tuple(download.endings or ()),
        secrets=_secrets(args, str(file.parent), node.child("secrets")),
        outside=plan.outside or UNSET,
    )


def _secrets(args: SettingsArgs, folder: str, node: SourceNode) -> dict[str, SecretCommand]:
    secrets: dict[str, SecretCommand] = {}
    for name, secret in (args.secrets or {}).items():
        secrets[name] = SecretCommand(tuple(secret.command), folder, node.child(name).key_place)
    return secrets


def find_settings(*starts: Path) -> Path | None:
    """Return the nearest ``msauto.toml`` of the first of these folders that has one, and then of the working folder.

    The limits of a repository are the same wherever a command starts. So another ``msauto.toml``, between the working
    folder and the root of its repository, raises :class:`InputError`: it is not clear whose limits hold.
    """
    nearest = next(settings_above(*starts, Path()), None)
    for other in settings_above(Path()):
        if nearest is not None and other.resolve() != nearest.resolve():
            message = f"two settings files: {nearest} is the nearest, but {other} is above the working folder as well"
            remedy = "merge them, or name the one to use: --config FILE"
            raise outside_node(str(nearest)).error(message, remedy, kind="file")
    return nearest


def _ledger_url(path: Path, state: StateArgs) -> LedgerUrl | None:
    """Return the shared ledger; its password is read when it is opened, so other commands do not need it."""
    if state.url is None:
        return None
    source: PasswordSource | None = None
    if state.password_env is not None:
        source = PasswordSource("env", state.password_env)
    elif state.password_file is not None:
        source = PasswordSource("file", beside(path, state.password_file))
    elif state.password_keyring is not None:
        source = PasswordSource("keyring", state.password_keyring)
    return LedgerUrl(state.url, source)


def _freeze(
    args: FreezeArgs | DatedFreezeArgs, timezone: str | None, node: SourceNode
) -> Freeze | DatedFreeze:
    from msauto.playbook.schema.settings import FreezeArgs

    if isinstance(args, FreezeArgs):
        return Freeze(tuple(args.days or DAYS), args.start, args.to, args.tz)
    zone = args.tz or timezone
    since = _moment(args.start, zone)
    until = _moment(args.end, zone, whole_day=timedelta(days=1))
    if since >= until:
        raise node.child("end").error(
            "end is before start, so the freeze never applies", "swap the two"
        )
    return DatedFreeze(since, until, args.reason or "")


def _moment(
    value: datetime | date, zone: str | None, whole_day: timedelta = timedelta()
) -> datetime:
    """Return a time with a zone; a date is its first moment, or with ``whole_day`` that of the next day."""
    if not isinstance(value, datetime):
        value = datetime.combine(value + whole_day, time())
    if value.tzinfo is not None:
        return value
    return value.replace(tzinfo=ZoneInfo(zone)) if zone else value.astimezone()


def _document(content: bytes, file: str) -> Document:
    """Return settings with their places; raises :class:`InputError`."""
    import tomli

    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise outside_node(file).error(
            "the file is not UTF-8", "save it as UTF-8", kind="yaml"
        ) from error
    lines = tuple(text.splitlines())
    document = Document(file, None, *_places(lines), redact_lines(lines))
    try:
        return structs.replace(document, data=tomli.loads(text.replace("\r\n", "\n")))
    except RecursionError as error:
        raise outside_node(file).error(
            "invalid TOML: too deeply nested", "nest it less", kind="yaml"
        ) from error
    except tomli.TOMLDecodeError as error:
        raise InputError([_syntax_problem(str(error), document)]) from error
    except ValueError as error:  # a number of more digits than Python reads; tomli reports no place
        place = SourceLocation(file)
        for number, line in enumerate(lines, 1):
            if match := re.search(r"(?<![\w.])[+-]?\d[\d_]{999,}", line):
                place = SourceLocation(file, number, match.start() + 1)
                break
        raise InputError(
            [document.problem("a number with too many digits", place, kind="yaml")]
        ) from error


def _syntax_problem(error: str, document: Document) -> Problem:
    """Return the problem of an error of ``tomli``; one without a place is at the end."""
    lines = document.lines or ("",)
    number = len(lines)
    column = len(lines[-1]) + 1
    match = re.search(r"\(at line (\d+), column (\d+)\)", error)
    if match:
        number, column = map(int, match.groups())
    line = ""
    if 0 < number <= len(lines):
        line = lines[number - 1]
    message, remedy = _explained(error, line, line[: column - 1])
    place = SourceLocation(document.file, number, column)
    return document.problem(f"invalid TOML: {message}", place, remedy, kind="yaml")


def _explained(error: str, line: str, before: str) -> tuple[str, str]:
    """Return message and remedy for an error of ``tomli`` on a line; ``before``: its text before the place."""
    if "=" not in before and re.match(r"\s*[\w-]+\s*:", line):
        return "a key and its value need = between them, not a colon", "write key = value"
    value = line.partition("=")[2].partition("#")[0].strip()
    for pattern, message, remedy in _TOML:
        if re.search(pattern, error):
            if remedy == _QUOTE and value in _MEANT:
                remedy = f"write {_MEANT[value]}"
            return message, remedy
    return re.sub(r" [(]at .*[)]$", "", error), "correct this line"


_MEANT = {"True": "true", "False": "false"} | BOOLEAN_WORDS
_QUOTE = 'write a text in quotes: "…"; numbers, true and false have none'
_TOML = (
    ("Invalid value", "this is not a value", _QUOTE),
    ("Expected '=' after a key", "the = after the key is missing", "write key = value"),
    (
        "Expected ']' at the end of a table|Invalid initial character for a key",
        "the name of the section is not closed",
        "write [name]",
    ),
    ("Unclosed array|Unclosed inline", "a list or table is not closed", "add the closing bracket"),
    (
        "Unterminated string|Expected \"'\"|Illegal character '.n'",
        "the closing quote is missing",
        "add it",
    ),
    (
        "hex value|Unescaped",
        "a backslash starts an escape in a text",
        "write it twice, or the text in 'single quotes'",
    ),
    ("Cannot overwrite a value", "the key occurs twice", "keep one of them"),
    (
        "Cannot declare|Cannot mutate|Cannot redefine",
        "the section occurs twice",
        "put its keys in one section",
    ),
    (
        "Expected newline or end",
        "something follows the value",
        "write one key on each line; a text in one pair of quotes",
    ),
)
"""Patterns of the errors of ``tomli``, each with our message and remedy."""


def _places(
    lines: tuple[str, ...],
) -> tuple[dict[DataPath, tuple[int, int]], dict[DataPath, tuple[int, int]]]:
    """Find keys by their lines, because ``tomli`` reports no places; keys of inline tables get that of the table."""
    values: dict[DataPath, tuple[int, int]] = {(): (1, 1)}
    keys: dict[DataPath, tuple[int, int]] = {}
    table: DataPath = ()
    counts = Counter[str]()
    for number, line in enumerate(lines, 1):
        if header := re.match(r"\s*(\[\[?)\s*([\w.-]+)\s*\]", line):
            name = header[2]
            table = tuple(name.split("."))
            if header[1] == "[[":
                table = (*table, counts[name])
                counts[name] += 1
            keys[table] = values[table] = number, header.start(2) + 1
        elif pair := re.match(r"\s*([\w-]+)\s*=\s*", line):
            path = (*table, pair[1])
            keys[path] = number, pair.start(1) + 1
            values[path] = number, pair.end() + 1
    return values, keys
