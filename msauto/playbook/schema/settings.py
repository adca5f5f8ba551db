"""The keys of ``msauto.toml`` (settings, «Settings: msauto.toml»)."""

import re
from datetime import time
from typing import Annotated, Any, ClassVar

from pydantic import Discriminator, Field, Tag

from msauto.concurrency import MOST_FORKS
from msauto.documents import key_rules as rule
from msauto.documents.strict_model import Model, key, need
from msauto.documents.value_types import (
    Count,
    Label,
    Name,
    Plain,
    Read,
    Texts,
    TimezoneName,
    When,
    between,
    invalid,
)
from msauto.errors import MsautoError
from msauto.file_access import ENDINGS_OF_PROGRAMS
from msauto.model.desired import OUTSIDE, OutsidePolicy
from msauto.model.ledger_url import parse_ledger_url
from msauto.playbook.change_windows import Day
from msauto.primitives.iso_times import parse_clock


def _clock(value: Any) -> time:
    """Read a time of day without a zone; `tz` names the zone, with its daylight saving time."""
    try:
        text = value if isinstance(value, str) else ""
        return value if isinstance(value, time) else parse_clock(text)
    except ValueError as error:
        remedy = "write hours and minutes, and set the zone with tz"
        raise invalid("must be a time of day such as 18:00, without a zone", remedy) from error


Days = Annotated[list[Day], Field(min_length=1)]
_Clock = Annotated[time, Read(_clock, type="string", pattern=r"^\d\d:\d\d")]


class LimitArgs(Model):
    """What a run may do without a flag."""

    hints: ClassVar = {
        "protected": ("protected is not one of the limits", "move it above the first [section]"),
        "read_only": ("read_only is not one of the limits", "move it above the first [section]"),
    }

    delete_assets: Plain[Count] = key("assets that a run may delete; default 0")
    remove_items: Plain[Count] = key(
        "list items that a run may lose without naming them by their keys; default 50"
    )
    requests: Plain[Count] = key("requests that a run may send; default no limit")


class FreezeArgs(Model):
    """A period of the week in which nothing may be changed."""

    days: Plain[Days] = key("days of the week, mon to sun; default all")
    start: _Clock = need("from this time of day", alias="from")
    to: _Clock = need("to this time of day; before from: the next day")
    tz: TimezoneName = need("the time zone, such as Europe/Oslo")


class DatedFreezeArgs(Model):
    """A period with dates in which nothing may be changed."""

    start: When = need("first day, or date and time, such as 2026-12-24")
    end: When = need("last day, which is frozen as well, or date and time")
    reason: Plain[Label] = key("why, shown where a run is refused")
    tz: Plain[TimezoneName] = key(
        "the time zone of start and end; default `tz` of this file, or this machine's"
    )


def _weekly_or_dated(freeze: Any) -> str:
    is_dated = isinstance(freeze, dict) and not freeze.keys().isdisjoint({"start", "end"})
    return "dated" if is_dated else "weekly"


_AnyFreeze = Annotated[
    Annotated[FreezeArgs, Tag("weekly")] | Annotated[DatedFreezeArgs, Tag("dated")],
    Discriminator(_weekly_or_dated),
]


def _ending(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"\.[A-Za-z0-9]{1,16}", value):
        raise invalid("must be an ending such as .gxf", "write a dot, and letters or digits")
    ending = value.lower()
    if ending in ENDINGS_OF_PROGRAMS:
        raise invalid(f"{value} is an ending of what msauto or another program reads", "remove it")
    return ending


_Ending = Annotated[str, Read(_ending, type="string", pattern=r"^\.[A-Za-z0-9]{1,16}$")]


class DownloadArgs(Model):
    """Where a run may write outside the repository, and what else it may download."""

    folders: Plain[list[Name]] = key(
        "folders outside the repository, relative to this file, in which a run may write: dest, --out, reports, pages"
    )
    endings: Plain[list[_Ending]] = key(
        "further endings of dest, such as .gxf; their content is not checked"
    )


def _ledger_url(value: Any) -> str:
    try:
        return str(parse_ledger_url(value if isinstance(value, str) else ""))
    except MsautoError as error:
        raise invalid(error.message, error.remedy) from None


_SCHEME = "".join(f"[{sign.upper()}{sign}]" for sign in "postgres")
_LedgerUrl = Annotated[
    str, Read(_ledger_url, type="string", pattern=rf"^\s*{_SCHEME}([Qq][Ll])?://")
]
_PASSWORDS = ("password_env", "password_file", "password_keyring")


class StateArgs(Model):
    """The ledger."""

    rules: ClassVar = (
        rule.one_of(_PASSWORDS, ("has both {0} and {1}", "keep one of them")),
        *(
            rule.needs(password, ("url",), "has a password but no url", "add url")
            for password in _PASSWORDS
        ),
    )

    url: Plain[_LedgerUrl] = key(
        "shared ledger in PostgreSQL, such as postgresql://msauto@db.example/msauto; default: the state folder"
    )
    password_env: Plain[Name] = key("environment variable with the password of url")
    password_file: Plain[Name] = key("file with the password of url, relative to this file")
    password_keyring: Plain[Name] = key(
        "service name of the password in the system keyring, for the user of url"
    )
    require: Plain[bool] = key(
        "refuse an empty ledger, for example in a container without its volume"
    )
    keep_runs: Plain[Count] = key("runs that the ledger keeps")
    keep_days: Plain[Count] = key(
        "days for which the ledger keeps its runs; default 400, without keep_runs"
    )


class PlanArgs(Model):
    """How plans are made."""

    outside: Plain[OutsidePolicy] = key(OUTSIDE)


class LookupArgs(Model):
    """What lookup() may read outside the repository of the playbooks."""

    folders: Plain[list[Name]] = key(
        "folders outside the repository that lookup() may read, relative to this file"
    )


class SecretArgs(Model):
    """A secret that a program prints."""

    command: Annotated[list[Name], Field(min_length=1)] = need(
        "program and arguments, without a shell; it runs in the folder of this file, with --secret-commands alone"
    )


class RolesArgs(Model):
    """Where roles are, besides roles/ beside a playbook."""

    path: Plain[Texts] = key(
        "folders with roles, relative to this file; playbooks may read what is in them"
    )


class SettingsArgs(Model):
    """Defaults and limits of a repository of playbooks."""

    playbook: Plain[Texts] = key(
        "playbooks of commands that get none, beside this file; default playbooks/site.yml"
    )
    inventory: Plain[Texts] = key("inventories, relative to this file")
    forks: Plain[Annotated[int, between(1, MOST_FORKS)]] = key(
        "targets at a time, 1 to 512; default: connections"
    )
    state_dir: Plain[Name] = key("folder of the ledger, relative to this file")
    tz: Plain[TimezoneName] = key(
        "the time zone of --window, such as Europe/Oslo; default this machine's"
    )
    plan: Plain[PlanArgs] = key("how plans are made")
    limits: Plain[LimitArgs] = key("what a run may do without a flag")
    protected: Plain[list[Name]] = key(
        "globs of titles or folders that no run may delete or remove from"
    )
    read_only: Plain[list[Name]] = key("globs of titles or folders that no run may write to")
    freeze: Plain[list[_AnyFreeze]] = key("periods in which nothing may be changed")
    state: Plain[StateArgs] = key("the ledger")
    secrets: Plain[dict[Name, SecretArgs]] = key("secrets that programs print, by name")
    roles: Plain[RolesArgs] = key("where roles are, besides roles/ beside a playbook")
    lookup: Plain[LookupArgs] = key("what lookup() may read outside the repository")
    download: Plain[DownloadArgs] = key(
        "where a run may write outside the repository; endings of downloads"
    )
