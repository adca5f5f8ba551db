"""The keys of plays and tasks, and of the modules other than ``asset`` and ``rss``."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Discriminator, RootModel, Tag, model_validator

from msauto.playbook.schema.asset import AssetArgs
from msauto.playbook.schema.operations import (
    AssertArgs,
    CommandArgs,
    CommandOnly,
    ProxyArgs,
    ProxyOnly,
    ThumbnailArgs,
    ThumbnailOnly,
    XmpBatchArgs,
)
from msauto.playbook.schema.rss import RssArgs
from msauto.playbook.schema.strict_model import AnyOf, Excludes, Model, Needs, Never, OneOf, key, need
from msauto.playbook.schema.values import (
    Count,
    Expressions,
    Flag,
    Label,
    Name,
    Number,
    Opt,
    Plain,
    Quoted,
    Text,
    Texts,
    UnrenderedTemplate,
    Value,
    invalid,
    one_or_list,
)

MODULES = ("asset", "rss", "thumbnail", "proxy", "xmp_batch", "command", "assert", "block", "import_tasks")
"""What a task may do: exactly one of these."""
_LOOPLESS = ("block", "import_tasks")
HANDLER_MODULES = ("command", "thumbnail", "proxy")
"""What a handler may do, on the asset whose change called it."""


class LoopControl(Model):
    """How a loop names its item."""

    loop_var: Plain[Name] = key("the variable that holds the item; default item")
    index_var: Plain[Name] = key("a variable that holds the item's number, from 0")
    label: Opt[Text] = key("how an item is shown")


_HINTS = {
    "include_tasks": ("include_tasks is not supported", "use import_tasks"),
    "include": ("include is not supported", "use import_tasks"),
    "with_items": ("with_items is not supported", "use loop"),
    "register": ("register is not supported", "facts of the asset are in asset"),
    "set_fact": ("set_fact is not supported", "use vars"),
    "until": ("until is not supported", "remove it"),
    "delegate_to": ("delegate_to is not supported", "write a play for that host"),
}


class _TaskKeys(Model):
    """What tasks and handlers share."""

    name: Opt[Label] = key("what the task is for, in a person's words")
    when: Plain[Expressions] = key("an expression, or several that must all hold, without braces")
    vars: Plain[dict[str, Any]] = key("variables of this task")
    loop: Opt[list[Any]] = key("the task is done once for each item of this list")
    loop_control: Plain[LoopControl] = key("how the loop names its item")


def _one_module(modules: tuple[str, ...], what: str) -> OneOf:
    return OneOf(
        modules,
        (f"the {what} has both {{0}} and {{1}}", f"split it into two {what}s"),
        (f"the {what} has no module", "add one of: " + ", ".join(modules)),
    )


_NEEDS_LOOP = Needs("loop_control", ("loop",), "loop_control requires loop", remedy="add loop, or remove loop_control")


class TaskArgs(_TaskKeys):
    """A task: a name, one module, and when it applies."""

    hints: ClassVar = _HINTS
    rules: ClassVar = (
        _one_module(MODULES, "task"),
        _NEEDS_LOOP,
        *(
            Excludes(each, ("loop",), "loop cannot be used with {key}", "move the loop to the tasks inside")
            for each in _LOOPLESS
        ),
        *(
            Excludes(each, ("notify",), "notify cannot be used with {key}: handlers run on assets", "remove notify")
            for each in ("rss", "xmp_batch", "assert")
        ),
    )

    tags: Opt[Texts] = key("tags to choose tasks by (--tags, --skip-tags); always and never are special")
    notify: Opt[Texts] = key("handlers that run where this task changed something")
    asset: Plain[AssetArgs] = key("an asset as it should be")
    rss: Plain[RssArgs] = key("an RSS channel as it should be")
    thumbnail: Plain[ThumbnailArgs] = key("a still image of an asset")
    proxy: Plain[ProxyArgs] = key("a viewing copy of an asset")
    xmp_batch: Plain[XmpBatchArgs] = key("XMP metadata loaded through a connector")
    command: Plain[CommandArgs] = key("a command that is run rather than compared")
    assert_: Plain[AssertArgs] = key("conditions that must hold, or the plan is refused", alias="assert")
    block: Plain[list[TaskArgs]] = key("tasks that share when, tags and vars")
    import_tasks: Opt[Name] = key("a file with a list of tasks, beside this one")


class HandlerArgs(_TaskKeys):
    """A handler: a task that runs once for each target that changed."""

    rules: ClassVar = (
        _one_module(HANDLER_MODULES, "handler"),
        _NEEDS_LOOP,
        Never("before", False, "a handler cannot run after the deletion of its asset", "remove before"),
    )
    hints: ClassVar = {
        **_HINTS,
        "notify": ("a handler cannot notify other handlers", "let the task notify both handlers"),
        "tags": ("a handler cannot have tags", "remove them: it runs whenever a task notifies it"),
        "listen": ("listen is not supported", "notify the handler by its name"),
        **{name: (f"a handler cannot run {name}", f"use one of: {', '.join(HANDLER_MODULES)}") for name in MODULES},
        "block": ("a handler cannot be a block", "write its handlers one by one, each with its own when and vars"),
        "import_tasks": ("handlers cannot be imported", "write them in the play; import the whole play to share them"),
    }

    name: Value[Quoted] = need("what tasks call it by, under notify")
    thumbnail: Plain[ThumbnailOnly] = key("a still image of the asset")
    proxy: Plain[ProxyOnly] = key("a viewing copy of the asset")
    command: Plain[CommandOnly] = key("a command that is run rather than compared")
    before: Opt[Flag] = key("it runs before a deletion of the asset: always so, and may be said")

    @model_validator(mode="after")
    def _plain_name(self) -> HandlerArgs:
        if isinstance(self.name, UnrenderedTemplate):
            raise invalid("the name of a handler cannot be a template", "write the name directly", key="name")
        return self


def _percent(value: Any) -> str:
    return "number" if isinstance(value, int | float) else "text"


_Serial = Annotated[Annotated[Count, Tag("number")] | Annotated[Quoted, Tag("text")], Discriminator(_percent)]


class BatchKeys(Model):
    """How a play goes through its servers."""

    serial: Opt[
        Annotated[
            Annotated[list[Value[_Serial]], Tag("list")] | Annotated[_Serial, Tag("one")], Discriminator(one_or_list)
        ]
    ] = key("how many servers at a time: a number or a percentage")
    max_fail_percentage: Opt[Number] = key("stop when more than this percentage of servers failed")
    any_errors_fatal: Opt[Flag] = key("stop at the first server that failed")


_TO_A_PLAY = "put it under tasks: of a play with hosts:, or let a play import this file with import_tasks"


class PlayArgs(BatchKeys):
    """A play: on which servers, and what is done there. Or the import of another playbook."""

    rules: ClassVar = (
        AnyOf(
            (("hosts",), ("import_playbook",)),
            "the play has no hosts",
            "add hosts: all, or a host, a group, a pattern",
        ),
        Excludes(
            "import_playbook",
            ("hosts", "database", "vars_files", *BatchKeys.model_fields, "tasks", "handlers"),
            "{other} cannot be used with import_playbook",
            "put it in the imported plays",
        ),
        Needs("when", ("import_playbook",), "when cannot be used on a play", "put it on the tasks, or on a block"),
    )
    hints: ClassVar = {
        "roles": ("roles are not supported", "use import_tasks"),
        "become": ("become is not supported", "remove it"),
        "gather_facts": ("gather_facts is not supported", "facts are read when they are used"),
        **{name: (f"this is a task ({name}), but a playbook is a list of plays", _TO_A_PLAY) for name in MODULES},
    }

    name: Opt[Label] = key("what the play is for, in a person's words")
    import_playbook: Opt[Name] = key("another playbook, beside this one, in place of a play")
    hosts: Opt[Texts] = key("hosts, groups and globs: a:b (union), a:&b (both), a:!b (but not)")
    database: Opt[Name] = key("the media database; default: the host variable database")
    vars: Plain[dict[str, Any]] = key("variables of this play")
    vars_files: Opt[Texts] = key("files with variables, beside the playbook")
    tags: Opt[Texts] = key("tags of all tasks in it")
    when: Plain[Expressions] = key("an expression for all plays of an imported playbook")
    tasks: Plain[list[TaskArgs]] = key("the tasks")
    handlers: Plain[list[HandlerArgs]] = key("what runs once for each target that changed")


class Playbook(RootModel[list[PlayArgs]]):
    """A playbook: a list of plays."""


class TaskFile(RootModel[list[TaskArgs]]):
    """A file for import_tasks: a list of tasks."""
