"""The keys of plays, tasks and handlers; those of ``asset`` are the union of what the aspects declare."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import model_validator

from msauto.aspects import ASPECTS
from msauto.aspects.arguments import State, with_keys
from msauto.aspects.aspect import Aspect
from msauto.aspects.command import COMMAND_RULES, CommandOnly
from msauto.aspects.downloads import ProxyOnly, ThumbnailOnly
from msauto.aspects.list_aspect import ListAspect
from msauto.aspects.rss_arguments import RssArgs
from msauto.aspects.xmp_batch import XmpBatchArgs
from msauto.documents import key_rules as rule
from msauto.documents import value_types as types
from msauto.documents.document import UnrenderedTemplate
from msauto.documents.strict_model import VARIABLES, DocumentModel, Model, key, need
from msauto.documents.value_types import (
    Count,
    Else,
    Expressions,
    Label,
    Name,
    Opt,
    Plain,
    Text,
    Texts,
    TextsOrLists,
    Then,
    Value,
)
from msauto.model import fields as registry
from msauto.model.desired import OUTSIDE, OutsidePolicy


class ExpectedCount(Model):
    """How many assets a selection may find. Any other number is a planning error."""

    min: Opt[Count] = key("minimum number of assets")
    max: Opt[Count] = key("maximum number of assets")


_MimeTypes = Annotated[
    Then[list[Value[registry.MimeType]]] | Else[registry.MimeType], types.IF_LIST
]


class SelectArgs(Model):
    """Selects assets of a listing."""

    folder: Opt[types.FolderText] = key(
        "folder to search, such as Raw/2026; an unknown folder is an error; default: the root"
    )
    recursive: Opt[bool] = key("search subfolders too; default false")
    created_after: Opt[types.When] = key(
        "only assets created after this date or time; without a zone, in the time zone of the server"
    )
    created_before: Opt[types.When] = key(
        "only assets created before this date or time; without a zone, in the time zone of the server"
    )
    created_within: Opt[types.Span] = key(
        "only assets created within this duration before now: 90s, 30m, 2h, 3d"
    )
    mimetype: Opt[_MimeTypes] = key("one or more types of assets")
    where: Plain[Expressions] = key(
        "condition on asset, an expression without braces: asset.frames > 250"
    )
    expect: Opt[ExpectedCount] = key("how many assets may be found")


TARGET_NAMES = ("title", "id", "select")
TWO_TARGETS = ("has both {0} and {1}", "name exactly one of title, id and select")
ONE_TARGET = rule.one_of(
    TARGET_NAMES, TWO_TARGETS, ("does not name an asset", "add title, id or select")
)


class TargetKeys(Model):
    """The keys that name an asset."""

    shorthand: ClassVar = "title"
    rules: ClassVar[tuple[rule.KeyRule, ...]] = (ONE_TARGET,)

    title: Opt[types.OneName] = key("title of the asset")
    id: Opt[types.KeyId] = key("key field and value, NS:ID, instead of a title")
    select: Opt[SelectArgs] = key("all assets of a listing, instead of a title")


class ExactlyArgs(Model):
    """The lists that are complete: items that they do not name are removed."""


_EXACT = {
    aspect.exactly[0]: aspect
    for aspect in ASPECTS.values()
    if isinstance(aspect, ListAspect) and aspect.exactly
}
_LISTS = dict(aspect.exactly for aspect in _EXACT.values() if aspect.exactly)
_LIST_NAMES: Any = Literal[tuple(_LISTS)]
_EXACTLY: Any = Annotated[
    Else[list[Value[_LIST_NAMES]]] | Then[with_keys(ExactlyArgs, _LISTS)],  # type: ignore[misc]
    types.IF_MAP,
]
_KEYS = {name: typed for aspect in ASPECTS.values() for name, typed in aspect.keys.items()}


class _Named(TargetKeys):
    rules: ClassVar[tuple[rule.KeyRule, ...]] = ()

    was: Opt[Texts] = key("former titles: an asset found under one of them is renamed to title")
    folder: Opt[types.FolderText] = key("guard: the home folder of the clip must be this folder")


class AssetArgs(
    with_keys(  # type: ignore[misc]
        _Named,
        {
            **_KEYS,
            "exactly": (
                Opt[_EXACTLY],
                key("lists that are complete: items that they do not name are removed"),
            ),
        },
    )
):
    """The desired state of an asset. Keys that are not named are not managed; an empty value clears."""

    rules: ClassVar = (
        ONE_TARGET,
        rule.needs("was", ("title",), "was requires title", "name the asset by its new title"),
        *(key_rule for aspect in ASPECTS.values() for key_rule in aspect.rules),
        *(rule.complete(name, tuple(aspect.keys)) for name, aspect in _EXACT.items()),
        rule.absent_has_none((*_KEYS, "exactly", "was")),
    )

    origin: Opt[types.Pos] = key(
        "time code of the first frame of the clip, for all time codes of this task; default 0"
    )
    missing: Opt[Literal["error", "skip"]] = key("how to handle an unknown title; default error")
    unfinalized: Opt[Literal["error", "skip", "allow"]] = key(
        "how to handle a clip that is still being recorded; default error"
    )
    lossy: Opt[bool] = key("allow changes that lose data that the interface cannot write back")
    state: Opt[State] = key("present (default) or absent: the asset is deleted")
    with_links: Opt[bool] = key(
        "delete the asset with state: absent even if links show it; default false"
    )


@lru_cache(maxsize=256)
def aspects_of(args: type[Model], given: frozenset[str]) -> list[Aspect]:
    """Return the aspect whose module has arguments of this type, or those of ``asset`` with a key among these.

    ``exactly`` may name a list that has no key.
    """
    own = []
    of_asset = []
    for aspect in ASPECTS.values():
        may_be_given = not aspect.keys or not given.isdisjoint({"exactly", *aspect.keys})
        if aspect.module is None and may_be_given:
            of_asset.append(aspect)
        elif aspect.module is not None and issubclass(args, aspect.module):
            own.append(aspect)
    return own or (of_asset if issubclass(args, AssetArgs) else [])


GROUPS = ("block", "import_tasks", "import_role")
"""The modules that hold tasks."""
MODULES = ("asset", "rss", "thumbnail", "proxy", "xmp_batch", "command", "assert", *GROUPS)
"""The modules of tasks: each task has exactly one."""
HANDLER_MODULES = ("command", "thumbnail", "proxy")
"""The modules of handlers, which run on the asset that changed."""


class RunTarget(TargetKeys):
    """The keys that name an asset, and how to handle a missing one."""

    missing: Opt[Literal["error", "skip"]] = key("how to handle an unknown title; default error")


class ThumbnailArgs(RunTarget, ThumbnailOnly):
    """A still image of an asset."""

    hints: ClassVar = {}


class ProxyArgs(RunTarget, ProxyOnly):
    """A viewing copy of an asset."""

    hints: ClassVar = {}


class CommandArgs(RunTarget, CommandOnly):
    """A command that is run, not compared."""

    shorthand: ClassVar = "name"
    hints: ClassVar = {}
    rules: ClassVar = (ONE_TARGET, *COMMAND_RULES)


class AssertArgs(TargetKeys):
    """Conditions that must be true, or planning fails. Without an asset, they use only variables."""

    shorthand: ClassVar = "that"
    rules: ClassVar = (rule.one_of(TARGET_NAMES, TWO_TARGETS),)

    that: Plain[Expressions] = need("expressions without braces; all must be true")
    msg: Opt[Text] = key("message if a condition is false")


def _unsupported(remedies: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return message and remedy for keys of Ansible that msauto does not have."""
    return {name: (f"{name} is not supported", remedy) for name, remedy in remedies.items()}


RoleName = Annotated[
    str,
    types.matching(
        r"^\w[\w.-]*$",
        "{} is not the name of a role",
        "write the name of its folder in roles/; it cannot be a template",
    ),
]
_HANDLERS_TOO = "the handlers of a role come with its tasks: list it under roles:, or use import_role among the tasks"


class RoleArgs(Model):
    """A role under ``roles:``, with what holds for all of its tasks."""

    rules: ClassVar = (
        rule.one_of(
            ("role", "name"),
            ("{0} and {1} are the same", "write one of them"),
            ("the role has no name", "write role: NAME"),
        ),
    )

    role: Plain[RoleName] = key("name of the role")
    name: Plain[RoleName] = key("the same as role")
    vars: Plain[dict[str, Any]] = key(
        "variables of the tasks of the role", json_schema_extra=VARIABLES
    )
    tags: Opt[Texts] = key("tags of all tasks of the role")
    when: Plain[Expressions] = key("condition for all tasks of the role")


class ImportRoleArgs(Model):
    """A role among the tasks."""

    shorthand: ClassVar = "name"
    hints: ClassVar = _unsupported(
        {
            **dict.fromkeys(
                ("tasks_from", "handlers_from", "defaults_from", "vars_from"),
                "a role is its main.yml files: make the other file a role of its own",
            ),
            "public": "remove it: only the tasks of a role see its variables",
            "allow_duplicates": "remove it: a role may be imported several times",
        }
    )

    name: Plain[RoleName] = need("name of the role")


class LoopControl(Model):
    """The names of a loop's variables."""

    loop_var: Plain[Name] = key("variable that holds the item; default item")
    index_var: Plain[Name] = key("variable that holds the index of the item, from 0")
    label: Opt[Text] = key("text that names the item in plans")


OUTSIDE_MSAUTO = "run shell commands outside of msauto, or by the CI job"
KEEP_IN_ANSIBLE = "keep it in Ansible: msauto changes media servers only"
_KEPT_IN_ANSIBLE = (
    "add_host apt apt_key apt_repository assemble async_status authorized_key blockinfile copy cron",
    "deb822_repository debconf dnf dnf5 docker_container dpkg_selections fetch file find firewalld",
    "gather_facts get_url getent git group hostname iptables known_hosts lineinfile mail mount",
    "mount_facts package package_facts pip reboot replace rpm_key seboolean selinux",
    "service service_facts set_stats setup slurp stat subversion synchronize sysctl systemd",
    "systemd_service sysvinit tempfile template timezone unarchive user wait_for wait_for_connection yum",
    "yum_repository",
)
FOREIGN_MODULES = {
    "include_tasks": "use import_tasks",
    "include": "use import_tasks",
    "include_role": "use import_role",
    "include_vars": "use vars_files of the play, or lookup('yaml', …)",
    "set_fact": "use vars",
    "uri": "use asset, rss, command, thumbnail or proxy",
    "debug": "show values with: msauto vars HOST NAME, msauto show, or msauto plan -v",
    "fail": "use assert with a false condition",
    "pause": "a run never waits for input; split the playbook, and apply the second part later",
    "meta": "remove it: handlers run after the changes of their target",
    "ansible.builtin.command": OUTSIDE_MSAUTO,
    **dict.fromkeys(("shell", "raw", "script"), OUTSIDE_MSAUTO),
    "ping": "remove it: msauto plan reads each server",
    "group_by": "write the hosts into groups of the inventory",
    "validate_argument_spec": "use assert",
    **dict.fromkeys(" ".join(_KEPT_IN_ANSIBLE).split(), KEEP_IN_ANSIBLE),
}
"""The modules of ``ansible.builtin``, and a few that many playbooks have, each with what replaces it."""

_UNSUPPORTED_OF_TASKS = {
    **FOREIGN_MODULES,
    **{
        f"with_{kind}": "use loop"
        for kind in (
            "items",
            "list",
            "dict",
            "file",
            "fileglob",
            "lines",
            "sequence",
            "nested",
            "together",
        )
    },
    "import_playbook": "write it beside the plays, not in their tasks",
    "register": "facts of the asset are in asset",
    "until": "msauto reads and verifies after writing; remove it",
    "retries": "reads are repeated, writes never; remove it",
    "delay": "remove it",
    "async": "targets are applied at the same time; remove it",
    "poll": "remove it",
    "delegate_to": "write a play for that host",
    "local_action": "run local commands outside of msauto",
    "ignore_errors": "a failed target never stops the others; use --keep-going for errors of planning",
    "ignore_unreachable": "a failed target never stops the others; use --keep-going for errors of planning",
    "rescue": "a failed target is reported, and the next run plans what is missing",
    "always": "a failed target is reported, and the next run plans what is missing",
    "no_log": "mark the values as secret: !secret, or | secret",
    "run_once": "write a play for one host; a command takes run: once",
    "changed_when": "the difference of desired and live decides; remove it",
    "failed_when": "use assert to check before anything is written",
    "check_mode": "use msauto plan",
    "diff": "msauto plan always shows the differences; remove it",
    "args": "write the arguments in the module",
    "listen": "notify the handler by its name",
    "throttle": "use connections of the server, or serial of the play",
    "environment": "templates read the environment: env.NAME",
}
_UNSUPPORTED_OF_BOTH = {
    **dict.fromkeys(
        ("become", "become_user", "become_method", "remote_user", "connection"), "remove it"
    ),
    **dict.fromkeys(("module_defaults", "collections", "debugger"), "remove it"),
    "any_errors_fatal": "write it on the play",
    "max_fail_percentage": "write it on the play",
}


_HINTS = _unsupported({**_UNSUPPORTED_OF_TASKS, **_UNSUPPORTED_OF_BOTH})


class _TaskKeys(Model):
    """The keys of both tasks and handlers."""

    name: Opt[Label] = key("description of the task, for plans and reports")
    when: Plain[Expressions] = key(
        "condition: one or more expressions without braces; all must be true"
    )
    vars: Plain[dict[str, Any]] = key("variables of this task", json_schema_extra=VARIABLES)
    loop: Opt[list[Any]] = key("list: the task runs once for each item")
    loop_control: Plain[LoopControl] = key("names of the loop's variables")


def _one_module(modules: tuple[str, ...], what: str) -> rule.KeyRule:
    return rule.one_of(
        modules,
        (f"the {what} has both {{0}} and {{1}}", f"split it into two {what}s"),
        (f"the {what} has no module", "add one of: " + ", ".join(modules)),
    )


_NEEDS_LOOP = rule.needs(
    "loop_control", ("loop",), "loop_control requires loop", "add loop, or remove loop_control"
)
_NO_HANDLERS = "notify cannot be used with {key}: handlers run on assets"


class TaskArgs(_TaskKeys):
    """A task: one module with its arguments, and the conditions of the task."""

    hints: ClassVar = _HINTS
    rules: ClassVar = (
        _one_module(MODULES, "task"),
        _NEEDS_LOOP,
        *(
            rule.excludes(module, ("notify",), _NO_HANDLERS, "remove notify")
            for module in ("rss", "xmp_batch", "assert")
        ),
    )

    tags: Opt[Texts] = key("tags for --tags and --skip-tags; always and never are special")
    notify: Opt[Texts] = key("handlers that run for each target that this task changes")
    outside: Plain[OutsidePolicy] = key(OUTSIDE)
    asset: Plain[AssetArgs] = key("desired state of an asset")
    rss: Plain[RssArgs] = key("desired state of an RSS channel")
    thumbnail: Plain[ThumbnailArgs] = key("a still image of an asset")
    proxy: Plain[ProxyArgs] = key("a viewing copy of an asset")
    xmp_batch: Plain[XmpBatchArgs] = key("XMP metadata to load through a connector")
    command: Plain[CommandArgs] = key("a command that is run, not compared")
    assert_: Plain[AssertArgs] = key(
        "conditions that must be true, or planning fails", alias="assert"
    )
    block: Plain[list["TaskArgs"]] = key("tasks that share when, tags, vars and loop")
    import_tasks: Opt[Name] = key("file with a list of tasks, relative to this file")
    import_role: Plain[ImportRoleArgs] = key("role whose tasks run here")


class HandlerArgs(_TaskKeys):
    """A handler: a task that runs once for each target that changed."""

    rules: ClassVar = (
        _one_module(HANDLER_MODULES, "handler"),
        _NEEDS_LOOP,
        rule.never(
            "before", False, "a handler cannot run after the deletion of its asset", "remove before"
        ),
    )
    hints: ClassVar = {
        **_HINTS,
        "notify": ("a handler cannot notify other handlers", "let the task notify both handlers"),
        "tags": ("a handler cannot have tags", "remove them: it runs whenever a task notifies it"),
        **{
            name: (f"a handler cannot run {name}", f"use one of: {', '.join(HANDLER_MODULES)}")
            for name in MODULES
        },
        "block": (
            "a handler cannot be a block",
            "write its handlers one by one, each with its own when and vars",
        ),
        "import_tasks": (
            "handlers cannot be imported",
            "write them in the play, or in a role to share them",
        ),
        "import_role": ("a handler cannot run a role", _HANDLERS_TOO),
    }

    name: Value[types.Quoted] = need("name that tasks use in notify")
    thumbnail: Plain[ThumbnailOnly] = key("a still image of the asset")
    proxy: Plain[ProxyOnly] = key("a viewing copy of the asset")
    command: Plain[CommandOnly] = key("a command that is run, not compared")
    before: Opt[bool] = key("the handler runs before a deletion of the asset; always true")

    @model_validator(mode="after")
    def _plain_name(self) -> Self:
        if isinstance(self.name, UnrenderedTemplate):
            raise types.invalid(
                "the name of a handler cannot be a template", "write the name directly", key="name"
            )
        return self


_Serial = Annotated[Then[Count] | Else[types.Quoted], types.IF_NUMBER]


class BatchKeys(Model):
    """How a play divides its servers into batches."""

    serial: Opt[Annotated[Then[list[Value[_Serial]]] | Else[_Serial], types.IF_LIST]] = key(
        "number or percentage of servers at a time"
    )
    max_fail_percentage: Opt[types.Number] = key(
        "stop if more than this percentage of servers failed"
    )
    any_errors_fatal: Opt[bool] = key("stop if a server failed")


_ADD_HOSTS = "add hosts: all, or a host, a group, a pattern"
_TO_A_PLAY = (
    "put it under tasks: of a play with hosts:, or let a play import this file with import_tasks"
)


class PlayArgs(BatchKeys):
    """A play: its servers and tasks; or the import of another playbook."""

    rules: ClassVar = (
        rule.any_of((("hosts",), ("import_playbook",)), "the play has no hosts", _ADD_HOSTS),
        rule.excludes(
            "import_playbook",
            (
                "hosts",
                "database",
                "vars_files",
                *BatchKeys.model_fields,
                "roles",
                "tasks",
                "handlers",
            ),
            "{other} cannot be used with import_playbook",
            "put it in the imported plays",
        ),
        rule.needs(
            "when",
            ("import_playbook",),
            "when cannot be used on a play",
            "put it on the tasks, or on a block",
        ),
    )
    hints: ClassVar = {
        **_unsupported(
            {
                key: remedy
                for key, remedy in _UNSUPPORTED_OF_BOTH.items()
                if key not in BatchKeys.model_fields
            }
        ),
        **_unsupported(
            {
                "vars_prompt": "nothing is asked in a run: use -e name=value, or env.NAME",
                "pre_tasks": "write them first in tasks",
                "post_tasks": "write them last in tasks",
                "strategy": "targets of a server are always applied at the same time; see serial",
                "environment": "templates read the environment: env.NAME",
                "ignore_errors": "a failed target never stops the others; use --keep-going for errors of planning",
                "no_log": "mark the values as secret: !secret, or | secret",
                "force_handlers": "a handler that did not run is pending, and the next run plans it",
            }
        ),
        "gather_facts": ("gather_facts is not supported", "facts are read when they are used"),
        **{
            name: (f"this is a task ({name}), but a playbook is a list of plays", _TO_A_PLAY)
            for name in MODULES
        },
    }

    name: Opt[Label] = key("description of the play, for plans and reports")
    import_playbook: Opt[Name] = key("another playbook, relative to this one, instead of a play")
    hosts: Opt[Texts] = key(
        "hosts, groups and globs: a:b (union), a:&b (intersection), a:!b (difference)"
    )
    database: Opt[Name] = key("media database; default: the host variable database")
    vars: Plain[dict[str, Any]] = key("variables of this play", json_schema_extra=VARIABLES)
    vars_files: Opt[TextsOrLists] = key(
        "files with variables, relative to the playbook; of a list in the list, the first that exists"
    )
    tags: Opt[Texts] = key("tags of all tasks of the play")
    outside: Plain[OutsidePolicy] = key(OUTSIDE)
    when: Plain[Expressions] = key("condition for all plays of an imported playbook")
    roles: Plain[list[Annotated[Then[RoleArgs] | Else[RoleName], types.IF_MAP]]] = key(
        "roles, whose tasks run before those of the play"
    )
    tasks: Plain[list[TaskArgs]] = key("tasks of the play")
    handlers: Plain[list[HandlerArgs]] = key("handlers: they run once for each target that changed")


class Playbook(DocumentModel[list[PlayArgs]]):
    """A playbook: a list of plays."""


class TaskFile(DocumentModel[list[TaskArgs]]):
    """A file for import_tasks: a list of tasks."""


class HandlerFile(DocumentModel[list[HandlerArgs]]):
    """The handlers of a role: a list of handlers."""
