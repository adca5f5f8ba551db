"""The keys of ``batch.yml``: jobs that run unattended. A batch file has no templates."""

from collections.abc import Mapping
from datetime import time, timedelta
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from msauto.concurrency import MOST_FORKS
from msauto.documents import key_rules as rule
from msauto.documents import value_types as types
from msauto.documents.strict_model import VARIABLES, Model, key, need
from msauto.documents.value_types import (
    IF_MAP,
    Count,
    Else,
    Name,
    Plain,
    Read,
    Texts,
    Then,
    between,
    invalid,
    matching,
)
from msauto.playbook.schema.settings import Days
from msauto.primitives.iso_times import parse_clock

Event = Literal["failed", "refused", "locked", "missed", "changed", "drift", "ok", "recovered"]
ReportFormat = Literal["text", "json", "markdown", "html"]
Requirement = Literal["ok", "any"]
"""What a job requires of an earlier one: that it ended with 0, or only that it ended."""


_JOB_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$"


def _some_time(value: timedelta) -> timedelta:
    if value > timedelta(days=7):
        raise invalid("must be at most 7d", "write a shorter time")
    if value < timedelta(seconds=1):
        raise invalid("must be at least 1s", "write a longer time")
    return value


def _requirements(value: Any) -> dict[str, Requirement]:
    """Return the names of earlier jobs with what is required of each."""
    requirements: dict[str, Requirement] = {}
    for item in types.as_list(value):
        requirements_of_item = item.items() if isinstance(item, dict) else [(item, "ok")]
        for name, required in requirements_of_item:
            if required not in ("ok", "any"):
                raise invalid(
                    f"{types.shown_value(required)} is not a valid requirement", "use ok or any"
                )
            requirements[_job_name.read(name)] = "any" if required == "any" else "ok"
    return requirements


def _argv(value: Any) -> tuple[str, ...]:
    if (
        isinstance(value, list)
        and value
        and all(isinstance(each, str) for each in value)
        and value[0].strip()
    ):
        return tuple(map(str, value))
    raise invalid(
        "must be a list of texts: a program and its arguments",
        'write [["logger", "done"]]; no shell runs',
    )


BatchName = Annotated[
    str,
    matching(
        r"^[a-z0-9]([a-z0-9-]{0,50}[a-z0-9])?$",  # Kubernetes limits the names of CronJobs to these
        "{} is not a valid batch name",
        "use at most 52 lower-case letters, digits and hyphens, such as nightly",
    ),
]
_job_name = matching(
    _JOB_NAME,
    "{} is not a valid job name",
    "use at most 63 letters, digits, hyphens, dots and underscores, such as news",
)
JobName = Annotated[str, _job_name]
VariableName = Annotated[
    str,
    matching(
        r"^[A-Za-z_][A-Za-z0-9_]*$",
        "{} is not a valid environment variable",
        "use a name such as CHAT_URL",
    ),
]
CredentialName = Annotated[
    str,
    matching(
        r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$",
        "{} is not a valid credential name",
        "use letters, digits, hyphens and dots",
    ),
]
MetricsFile = Annotated[
    str,
    matching(
        r"^.+\.prom$",
        "{} does not end with .prom",
        "use a name such as msauto.prom: the node exporter reads no others",
    ),
]
MinuteOfDay = Annotated[
    time,
    matching(
        r"^([01][0-9]|2[0-3]):[0-5][0-9]$",
        "must be a time of day such as 03:10, not {}",
        convert=parse_clock,
    ),
]
"""A time of day without seconds or a zone: no scheduler of all four can start more exactly."""
UpToAWeek = Annotated[types.Span, AfterValidator(_some_time)]
_NAME_SCHEMA = {"type": "string", "pattern": _JOB_NAME}
_MAP_SCHEMA = {"type": "object", "patternProperties": {_JOB_NAME: {"enum": ["ok", "any"]}}}
_LIST_SCHEMA = {"type": "array", "items": {"anyOf": [_NAME_SCHEMA, _MAP_SCHEMA]}}
Requirements = Annotated[
    Mapping[str, Requirement],
    Read(_requirements, anyOf=[_NAME_SCHEMA, _MAP_SCHEMA, _LIST_SCHEMA]),
]
"""One name, ``{name: any}``, or a list of these; as a value, a mapping of name to requirement."""
_PROGRAM = {"type": "string", "pattern": r"\S"}
Argv = Annotated[
    tuple[str, ...],
    Read(_argv, type="array", items={"type": "string"}, minItems=1, prefixItems=[_PROGRAM]),
]


class SecretSource(Model):
    """Where a secret is: exactly one source."""

    rules: ClassVar = (
        rule.one_of(
            ("env", "file", "keyring", "credential"),
            ("has both {0} and {1}", "keep one of them"),
            ("does not name a source of the secret", "add env, file, keyring or credential"),
        ),
    )

    env: Plain[VariableName] = key("name of an environment variable")
    file: Plain[Name] = key("file that contains only the secret, relative to the batch file")
    keyring: Plain[Name] = key(
        "service name of the secret in the system keyring; the user is the name of the batch"
    )
    credential: Plain[CredentialName] = key(
        "name of a file in $CREDENTIALS_DIRECTORY, as systemd sets it"
    )


SecretOrText = Annotated[Then[SecretSource] | Else[str], IF_MAP]
"""A text, or the source of a secret one."""


class ScheduleArgs(Model):
    """When the batch starts."""

    at: MinuteOfDay = need("time of day in tz, such as 03:10")
    days: Plain[Days] = key("days of the week, mon to sun; default all")
    tz: types.TimezoneName = need("time zone, such as Europe/Oslo")
    spread: Plain[UpToAWeek] = key(
        "start up to this much later, at random, to spread the load: 10m; default 0"
    )


class WindowArgs(Model):
    """The hours in which the batch may run, in the time zone of the schedule."""

    start: MinuteOfDay = need("from this time of day", alias="from")
    to: MinuteOfDay = need("to before this time of day; if earlier than from, on the next day")


class ReportArgs(Model):
    """A dated report file of each night."""

    dir: Name = need("folder of the report files, relative to this file")
    formats: Plain[list[ReportFormat]] = key(
        "forms of the report: text, json, markdown, html; default text"
    )
    keep_days: Plain[Annotated[int, between(1, 36500)]] = key(
        "delete report files older than this; default: keep all"
    )


class PagesArgs(Model):
    """A page of each night, and an index of them."""

    dir: Name = need("folder of the pages of this batch alone, relative to this file")
    keep_days: Plain[Annotated[int, between(1, 36500)]] = key(
        "delete pages older than this; default: keep all"
    )


PagesOrFolder = Annotated[Then[PagesArgs] | Else[Name], IF_MAP]


class MetricsArgs(Model):
    """A text file of metrics for the node exporter of Prometheus."""

    shorthand: ClassVar = "file"

    file: MetricsFile = need("file to write, ending with .prom, relative to this file")


class NotifyArgs(Model):
    """An address that gets a notice after certain events."""

    to: SecretOrText = need(
        "smtp://HOST?from=A&to=B (smtps: TLS), an Apprise URL, or the source of a secret one"
    )
    on: Annotated[list[Event], Field(min_length=1)] = need(
        "events: failed, refused, locked, missed, changed, drift, ok, recovered"
    )


class RetryArgs(Model):
    """How often a job is planned again for what may get better: no connection or answer, 429, 503, a lock."""

    times: Annotated[int, between(1, 20)] = need("further attempts, 1 to 20")
    wait: UpToAWeek = need("pause before each, such as 5m")


class AllowArgs(Model):
    """What a job may do beyond the limits of msauto.toml."""

    delete: Plain[Count] = key("assets that a run of the job may delete, as --allow-delete")
    remove: Plain[Count] = key("list items that a run of the job may lose, as --allow-remove")
    requests: Plain[Count] = key("requests that a run of the job may send, as --allow-requests")


class DriftArgs(Model):
    """When a job with `do: plan` reports drift."""

    after: Annotated[int, between(1, 365)] = need(
        "nights in a row in which a target differs before it is reported"
    )


class JobKeys(Model):
    """What `defaults` and each job may set."""

    inventory: Plain[Texts] = key(
        "inventory, or a list, relative to this file; default: that of msauto.toml"
    )
    extra_vars: Plain[dict[str, Any]] = key(
        "variables of highest precedence", json_schema_extra=VARIABLES
    )
    limit: Plain[Name] = key("only these hosts")
    tags: Plain[Texts] = key("only tasks with one of these tags")
    forks: Plain[Annotated[int, between(1, MOST_FORKS)]] = key("targets at a time, 1 to 512")
    keep_going: Plain[bool] = key(
        "leave out targets in error and apply the rest; the job then ends with 3; default false"
    )
    max_time: Plain[UpToAWeek] = key(
        "begin no further target or attempt after this time, such as 90m"
    )
    lock_timeout: Plain[UpToAWeek] = key(
        "wait this long for another run that holds a lock; default 0"
    )
    retry: Plain[RetryArgs] = key(
        "further attempts for what may get better: no connection or answer, 429, 503, a lock"
    )
    allow: Plain[AllowArgs] = key("what a run may do beyond the limits of msauto.toml")
    do: Plain[Literal["apply", "plan"]] = key(
        "apply (default) within the limits, or plan: only report what differs"
    )
    drift: Plain[DriftArgs] = key("with do: plan, when to report drift; default: the first night")
    on_end: Plain[list[Argv]] = key(
        "programs to run after the job, each a list of texts; no shell is involved"
    )


class DefaultArgs(JobKeys):
    """Values for the keys that a job does not set itself."""


NOT_FOR_PLANS = ("extra_vars", "limit", "tags", "do", "drift")
"""Keys that a job with a saved plan cannot have: they are part of the plan."""


class JobArgs(JobKeys):
    """One job: playbooks, or a saved plan."""

    hints: ClassVar = {
        "after": ("unknown key 'after'", "use needs: [JOB]"),
        "window": (
            "window is not one of the keys of a job",
            "write it beside `jobs`: it holds for the whole batch",
        ),
    }
    rules: ClassVar = (
        rule.one_of(
            ("playbooks", "plan"),
            ("has both {0} and {1}", "make two jobs of it"),
            ("the job has neither playbooks nor plan", "add playbooks: [FILE]"),
        ),
        rule.needs(
            "optional",
            ("plan",),
            "optional is only for a saved plan",
            "remove it, or add plan: FILE",
        ),
        rule.excludes(
            "plan",
            NOT_FOR_PLANS,
            "{other} cannot be used with a saved plan",
            "remove it: the plan has been made already",
        ),
    )

    playbooks: Plain[Texts] = key("playbook, or a list, relative to this file")
    plan: Plain[Name] = key("saved plan to apply, relative to this file, instead of playbooks")
    optional: Plain[bool] = key(
        "skip the job if the saved plan does not exist; default false: that is an error"
    )
    needs: Plain[Requirements] = key(
        "earlier jobs that must have ended with 0; {name: any} only requires that the job has ended"
    )


class BatchFileArgs(Model):
    """Jobs that run unattended, one after another."""

    name: BatchName = need(
        "name of the batch, which its lock, its metrics and the units of a scheduler have too"
    )
    schedule: ScheduleArgs = need("when the batch starts")
    window: Plain[WindowArgs] = key("hours in which the batch may run; default: always")
    heartbeat: Plain[SecretOrText] = key(
        "URL of a check in the healthchecks protocol, or the source of a secret one"
    )
    metrics: Plain[MetricsArgs] = key("text file of metrics for Prometheus")
    reports: Plain[ReportArgs] = key("dated report files")
    pages: Plain[PagesOrFolder] = key(
        "a page of each night, and an index of them; a text is their folder"
    )
    notify: Plain[list[NotifyArgs]] = key("addresses that get a notice")
    defaults: Plain[DefaultArgs] = key("values for all jobs")
    jobs: Annotated[dict[JobName, JobArgs], Field(min_length=1)] = need(
        "jobs by name, in the order in which they run"
    )
