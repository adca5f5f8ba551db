"""Resolves playbooks and inventory to intents, without a server; raises all problems at once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from operator import itemgetter
from pathlib import Path

from msgspec import Struct, field, structs

from msauto.aspects.rss_arguments import RssArgs
from msauto.documents.document import Problems, SourceNode, outside_node
from msauto.documents.value_types import as_list
from msauto.errors import InputError, Problem, nearest
from msauto.model.desired import Batch, Intent, ResolvedPlaybooks, ServerIntents
from msauto.model.server import ServerSpec
from msauto.playbook.hosts import Hosts, ResolveOptions, open_hosts
from msauto.playbook.input_files import Files, beside, how_to_find
from msauto.playbook.intents import Order, TaskContext, task_handlers, task_intents
from msauto.playbook.plays import InheritedKeys, Loader, Play
from msauto.playbook.schema.play import AssetArgs, BatchKeys
from msauto.playbook.schema.schema_errors import read_as
from msauto.playbook.templates.names import UsesAssetError
from msauto.playbook.templates.rendering import render_data, render_shown
from msauto.playbook.variables import Level, TemplateScope, Variable, read_variables
from msauto.primitives.decimals import read_decimal, read_whole

_SPECIAL_TAGS = frozenset({"always", "never", "all", "tagged", "untagged"})
_NO_TAGS = "the tasks have no tags: add tags:, or remove the flag"


def resolve(options: ResolveOptions) -> ResolvedPlaybooks:
    """Return the work that playbooks ask of each server; raises :class:`InputError` with all that is wrong."""
    files = Files(options.lookup_folders, options.documents)
    opened: list[Hosts] = []
    with files.tracker.secrets.redacted_errors():
        with files.problems.gather():
            opened.append(open_hosts(options, files))
        plays = _load(options, files)
        resolved = [resolve_plays(plays, hosts) for hosts in opened]
        files.problems.check()
    return resolved[0]


def _load(options: ResolveOptions, files: Files) -> list[Play]:
    loader = Loader(files, options.role_folders)
    inherited = InheritedKeys(outside=options.outside)
    return [play for playbook in options.playbooks for play in loader.playbook(playbook, inherited)]


def outline(options: ResolveOptions) -> list[PlayOutline]:
    """Return the plays with their hosts and the tasks that the tags choose; raises :class:`InputError`."""
    files = Files(options.lookup_folders, options.documents)
    with files.tracker.secrets.redacted_errors():
        hosts = open_hosts(options, files)
        plays = _load(options, files)
        files.problems.add(*tag_problems(options, plays))
        files.problems.check()
        run = _Resolver(hosts, check_only=True, limit=hosts.limit())
        outlines: list[PlayOutline] = []
        for play in plays:
            tasks = tuple(
                TaskOutline(task.name or task.module, task.module, sorted(task.inherited.tags), str(task.node.place))
                for task in play.tasks
                if chosen(task.inherited.tags, options.tags, options.skip_tags)
            )
            name = str(play.data.get("name") or play.node.place)
            outlines.append(PlayOutline(name, play.file, tuple(run.hosts_of(play)), tasks))
        return outlines


def resolve_plays(plays: Sequence[Play], hosts: Hosts, *, check_only: bool = False) -> ResolvedPlaybooks:
    """Resolve plays as far as possible; ``hosts.files.problems`` collects what is wrong.

    ``check_only`` is for ``validate``: a stand-in replaces a server whose block cannot be known here, because its
    secrets are not set, and tasks that the tags leave out are checked as well.
    """
    options, files, problems, known = hosts.options, hosts.files, hosts.files.problems, hosts.inventory.hosts
    run = _Resolver(hosts, check_only)
    with problems.gather():
        run.limit = hosts.limit()
    for play in plays:
        run.play(play)
    problems.add(*hosts.same_servers([name for name in known if name in run.played_on]))
    if plays and run.limit and not run.played_on and options.limit is not None and not check_only:
        why = "the limit matches no host of any play"
        by_url = options.server_url is not None
        no_host = outside_node("--server" if by_url else "--limit", options.server_url or options.limit)
        problems.add(no_host.problem(why, "use a host or group of the plays", kind="host"))
    if plays and not check_only:  # no plays are an error of their own
        problems.add(*tag_problems(options, plays))
    work = tuple(
        ServerIntents(run.servers[name], tuple(run.intents[name]), tuple(run.left_out[name]))
        for name in known
        if name in run.intents
    )
    inputs = files.inputs(options.playbooks)
    warnings = hosts.inventory.warnings
    if options.transport is None and not check_only:
        openly = hosts.sent_openly([name for name in known if name in run.intents])
        warnings += tuple(f"{each.place}: {each.message}; {each.remedy}" for each in openly)
    return ResolvedPlaybooks(work, inputs, warnings, run.batches.all(), secrets=files.tracker.secrets)


class TaskOutline(Struct, frozen=True):
    """A task as it is listed: its name, its module, its tags with those of its play, and its place."""

    name: str
    module: str
    tags: list[str]
    place: str


class PlayOutline(Struct, frozen=True):
    """A play as it is listed: its name, its file, its hosts within the limit, and its chosen tasks."""

    name: str
    file: str
    hosts: tuple[str, ...]
    tasks: tuple[TaskOutline, ...]


# serial, max_fail_percentage and any_errors_fatal: the servers of plays in batches, as in Ansible


def _size(value: int | str, node: SourceNode) -> int | float:
    """Return a count of servers as an int, a share of them as a float."""
    text = str(value).strip()
    percent = read_decimal(text.removesuffix("%")) if text.endswith("%") else None
    if percent is not None and 0 < percent <= 100:
        return float(percent / 100)
    count = read_whole(text, least=0)
    if count is not None:
        return count
    raise node.error(f"serial must be a number of servers or a percentage, not {text[:40]!r}", 'for example 2 or "30%"')


def divide(hosts: Sequence[str], serial: Sequence[int | float]) -> list[tuple[str, ...]]:
    """Return the hosts in batches of these counts (int) or shares (float); the last one repeats, 0 means all others.

    >>> divide(["a", "b", "c", "d", "e"], [1, 0.5])
    [('a',), ('b', 'c'), ('d', 'e')]
    """
    batches: list[tuple[str, ...]] = []
    start = 0
    while start < len(hosts):
        size = serial[min(len(batches), len(serial) - 1)] if serial else 0
        count = size if isinstance(size, int) else max(1, int(size * len(hosts)))
        end = start + count if count else len(hosts)
        batches.append(tuple(hosts[start:end]))
        start = end
    return batches


class Batches:
    """The batches of a run, numbered from 0 in the order of the plays.

    Consecutive plays without batch keys are one batch. The first play that names a target decides its batch.
    """

    def __init__(self) -> None:
        self._batches: list[Batch] = []
        self._plain = False  # whether the last batch is of plays without batch keys

    def add(self, play: Batch, serial: Sequence[int | float]) -> dict[str, int]:
        """Add a play with all its servers, divided by ``serial``; return the number of each server's batch."""
        plain = not serial and play.max_fail is None and not play.fatal  # a failed server stops no other
        if plain and self._plain:
            last = self._batches[-1]
            self._batches[-1] = structs.replace(last, servers=tuple(dict.fromkeys((*last.servers, *play.servers))))
            return dict.fromkeys(play.servers, len(self._batches) - 1)
        self._plain = plain
        numbers: dict[str, int] = {}
        for servers in divide(play.servers, serial):
            numbers |= dict.fromkeys(servers, len(self._batches))
            self._batches.append(structs.replace(play, servers=servers))
        return numbers

    def all(self) -> tuple[Batch, ...]:
        """Return all batches; none if no play has batch keys."""
        return () if self._plain and len(self._batches) == 1 else tuple(self._batches)


class _Resolver(Struct):
    """Resolves plays, host by host and task by task."""

    hosts: Hosts
    check_only: bool
    limit: frozenset[str] = frozenset()
    intents: dict[str, list[Intent]] = field(default_factory=dict)
    left_out: dict[str, list[Intent]] = field(default_factory=dict)
    servers: dict[str, ServerSpec] = field(default_factory=dict)
    batches: Batches = field(default_factory=Batches)
    played: int = 0
    played_on: set[str] = field(default_factory=set)

    @property
    def problems(self) -> Problems:
        """What is wrong, of all hosts and tasks."""
        return self.hosts.files.problems

    def play(self, play: Play) -> None:
        """Resolve one play on all of its hosts."""
        with self.problems.gather():
            hosts = self.hosts_of(play)
            numbers = self._batches_of(play, hosts) if hosts else {}
            self.played_on.update(hosts)
            for name in hosts:
                with self.problems.gather():
                    self._play_on(play, name, numbers[name])
        self.played += 1

    def hosts_of(self, play: Play) -> list[str]:
        """Return the hosts of a play within the limit; none of a play without ``hosts``, which is reported itself."""
        if "hosts" not in play.data:
            return []
        node = play.node.child("hosts")
        any_scope = self.hosts.scope(next(iter(self.hosts.inventory.hosts)), play.folder)
        data = render_shown(play.data.get("hosts"), any_scope, node)
        matched = self.hosts.match(",".join(str(each) for each in as_list(data)), node)
        return [name for name in matched if name in self.limit]

    def _batches_of(self, play: Play, hosts: list[str]) -> dict[str, int]:
        """Return the number of each host's batch; problems are collected, and the tasks are still checked."""
        node, problems = play.node, self.problems
        scope = self._play_scope(play, self.hosts.scope(hosts[0], play.folder))
        name = str(render_shown(play.data.get("name", ""), scope, node.child("name")))
        with problems.gather():
            values = {name: play.data[name] for name in BatchKeys.model_fields if name in play.data}
            keys = read_as(BatchKeys, render_shown(values, scope, node), node)
            serial: list[int | float] = []
            for index, value in enumerate([] if keys.serial is None else as_list(keys.serial)):
                here = node.child("serial", index) if isinstance(keys.serial, list) else node.child("serial")
                with problems.gather():
                    serial.append(_size(value, here))
            if keys.max_fail_percentage is not None and keys.max_fail_percentage > 100:
                place = node.child("max_fail_percentage")
                problems.add(place.problem("max_fail_percentage must be at most 100", "use a value from 0 to 100"))
            batch = Batch(name, tuple(hosts), keys.max_fail_percentage, bool(keys.any_errors_fatal))
            return self.batches.add(batch, serial)
        return dict.fromkeys(hosts, 0)

    def _play_on(self, play: Play, name: str, batch: int) -> None:
        server = self.hosts.stand_in(name) if self.check_only else self.hosts.server(name, play.folder)
        scope = self._play_scope(play, self.hosts.scope(name, play.folder))
        self.servers.setdefault(name, server)
        intents, left_out = self.intents.setdefault(name, []), self.left_out.setdefault(name, [])
        context = TaskContext(server, scope, play, [[] for _ in play.handlers], batch)
        for index, task in enumerate(play.handlers):  # handlers ignore tags
            with self.problems.gather():
                context.handlers[index].extend(task_handlers(task, context, (self.played, index)))
        new_intents, protecting = list[tuple[Order, Intent]](), list[tuple[Order, Intent]]()
        for task in play.tasks:
            tags, options = task.inherited.tags, self.hosts.options
            if chosen(tags, options.tags, options.skip_tags):
                with self.problems.gather():
                    new_intents.extend(task_intents(task, context))
                continue
            protects = isinstance(task.args, AssetArgs | RssArgs) and chosen(tags, (), ())
            if self.check_only or protects:
                with self.problems.gather() if self.check_only else suppress(InputError):
                    (protecting if protects else []).extend(task_intents(task, context))
        for all_intents, added in ((intents, new_intents), (left_out, protecting)):
            all_intents.extend(intent for _, intent in sorted(added, key=itemgetter(0)))

    def _play_scope(self, play: Play, scope: TemplateScope) -> TemplateScope:
        """Return the names of a play on a host: those of the host, its variables, ``vars_files`` and ``database``."""
        scope = scope.with_variables(play.inherited.variables)
        files, node = self.hosts.files, play.node.child("vars_files")
        names = render_shown(play.data.get("vars_files", []), scope, node)
        variables: list[Variable] = []
        for index, name in enumerate(as_list(names)):
            path, here = beside(play.file, str(name)), node.child(index)
            files.check_named(path, play.inherited.files[0], here)
            if not Path(path).is_file():
                raise here.error(f"{path}: file not found", how_to_find(path), kind="file")
            document = files.document(path)
            variables += read_variables(document.data, Level.VARS_FILES, SourceNode(document))
        scope = scope.with_variables(variables)
        if "database" not in play.data:
            return scope
        node, database = play.node.child("database"), play.data["database"]
        with suppress(InputError, UsesAssetError):  # reported for the task that needs it
            database = render_data(database, scope, node)  # it may use a weaker variable of the same name
        return scope.with_variables([Variable("database", database, Level.PLAY_KEY, node)])


def chosen(tags: frozenset[str], desired: Sequence[str], skipped: Sequence[str]) -> bool:
    """Return whether a task with these tags runs, by Ansible's rules for ``always`` and ``never``."""
    skip, want = set(skipped), set(desired)
    if tags & skip or ("tagged" in skip and tags) or ("untagged" in skip and not tags):
        return False
    if "all" in skip and "always" not in tags:
        return False
    if "never" in tags and "always" not in tags:
        return bool(tags & want)
    if "always" in tags or not want or "all" in want:
        return True
    return bool(tags & want) or ("tagged" in want and bool(tags)) or ("untagged" in want and not tags)


def tag_problems(options: ResolveOptions, plays: Sequence[Play]) -> list[Problem]:
    """Return the tags that no task has, or that `--tags` chooses no task."""
    tasks = [task.inherited.tags for play in plays for task in play.tasks]
    known = {tag for tags in tasks for tag in tags}
    problems = [
        outside_node(flag, tag).problem(f"no task has the tag {tag!r}", nearest(tag, known) or _NO_TAGS)
        for flag, tags in (("--tags", options.tags), ("--skip-tags", options.skip_tags))
        for tag in tags
        if tag not in known | _SPECIAL_TAGS
    ]
    are_chosen = (chosen(tags, options.tags, options.skip_tags) for tags in tasks)
    if options.tags and tasks and not problems and not any(are_chosen):
        problems.append(outside_node("--tags").problem("the tags choose no task", nearest("", known) or _NO_TAGS))
    return problems
