"""Resolves playbooks and inventory to intents, without a server; raises all problems at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from operator import itemgetter
from typing import Any

from msgspec import Struct, field, structs

from msauto.aspects.rss_arguments import RssArgs
from msauto.documents.document import Problems, SourceNode, outside_node
from msauto.documents.value_types import as_list, has_pending
from msauto.errors import InputError, Problem, nearest
from msauto.file_access import may_be_file
from msauto.model.desired import Batch, Handler, Intent, ResolvedPlaybooks, ServerIntents
from msauto.model.server import ServerSpec, is_sent_openly
from msauto.playbook.hosts import Hosts, ResolveOptions, open_hosts
from msauto.playbook.input_files import Files, beside, how_to_find
from msauto.playbook.intents import Order, TaskContext, task_handlers, task_intents
from msauto.playbook.inventory import match_hosts
from msauto.playbook.plays import InheritedKeys, Loader, Play, Task
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
    hosts: Hosts | None = None
    with files.tracker.secrets.redacted_errors():
        with files.problems:
            hosts = open_hosts(options, files)
        plays = _load(options, files)
        if hosts is None:
            raise InputError(files.problems)
        resolved = resolve_plays(plays, hosts)
        files.problems.check()
        return resolved


def _load(options: ResolveOptions, files: Files) -> list[Play]:
    loader = Loader(files, options.role_folders)
    inherited = InheritedKeys(outside=options.outside)
    plays: list[Play] = []
    for playbook in options.playbooks:
        plays += loader.playbook(playbook, inherited)
    return plays


def outline(options: ResolveOptions) -> list[PlayOutline]:
    """Return the plays with their hosts and the tasks that the tags choose; raises :class:`InputError`."""
    files = Files(options.lookup_folders, options.documents)
    with files.tracker.secrets.redacted_errors():
        hosts = open_hosts(options, files)
        plays = _load(options, files)
        files.problems.extend(tag_problems(options, plays))
        files.problems.check()
        run = _Resolver(hosts, files.problems, check_only=True, limit=hosts.limit())
        outlines: list[PlayOutline] = []
        for play in plays:
            name = str(play.data.get("name") or play.node.place)
            hosts_of_play = tuple(run.hosts_of(play))
            tasks = tuple(_outlined_tasks(play, options))
            outlines.append(PlayOutline(name, play.file, hosts_of_play, tasks))
        return outlines


def _outlined_tasks(play: Play, options: ResolveOptions) -> Iterator[TaskOutline]:
    for task in play.tasks:
        tags = task.inherited.tags
        if chosen(tags, options.tags, options.skip_tags):
            yield TaskOutline(
                task.name or task.module, task.module, sorted(tags), str(task.node.place)
            )


def resolve_plays(
    plays: Sequence[Play], hosts: Hosts, *, check_only: bool = False
) -> ResolvedPlaybooks:
    """Resolve plays as far as possible; ``hosts.files.problems`` collects what is wrong.

    ``check_only`` is for ``validate``: a stand-in replaces a server whose block cannot be known here, because its
    secrets are not set, and tasks that the tags leave out are checked as well.
    """
    options = hosts.options
    problems = hosts.files.problems
    run = _Resolver(hosts, problems, check_only)
    with problems:
        run.limit = hosts.limit()
    for number, play in enumerate(plays):
        run.play(number, play)
    if len(run.played_on) > 1:
        names = [name for name in hosts.inventory.hosts if name in run.played_on]
        problems.extend(hosts.same_servers(names))
    if plays and not check_only:  # no plays are an error of their own
        if options.limit is not None and run.limit and not run.played_on:
            problems.append(_unused_limit(options))
        problems.extend(tag_problems(options, plays))
    works = [run.work[name] for name in hosts.inventory.hosts if name in run.work]
    warnings = tuple(dict.fromkeys(hosts.warnings))
    if options.transport is None and not check_only:
        named = [work.server.name for work in works if is_sent_openly(work.server.url)]
        for problem in hosts.sent_openly(named):
            warnings += (f"{problem.place}: {problem.message}; {problem.remedy}",)
    intents: list[ServerIntents] = []
    for work in works:
        intents.append(ServerIntents(work.server, tuple(work.intents), tuple(work.left_out)))
    return ResolvedPlaybooks(
        tuple(intents),
        hosts.files.inputs(options.playbooks),
        warnings,
        run.batches.all(),
        secrets=hosts.files.tracker.secrets,
    )


def _unused_limit(options: ResolveOptions) -> Problem:
    """Return the problem of a limit, or of a server, that no play concerns."""
    node = outside_node("--limit", options.limit or "")
    if options.server_url is not None:
        node = outside_node("--server", options.server_url)
    return node.problem(
        "the limit matches no host of any play", "use a host or group of the plays", kind="host"
    )


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
    raise node.error(
        f"serial must be a number of servers or a percentage, not {text[:40]!r}",
        'for example 2 or "30%"',
    )


def divide(hosts: Sequence[str], serial: Sequence[int | float]) -> list[tuple[str, ...]]:
    """Return the hosts in batches of these counts (int) or shares (float); the last one repeats, 0 means all others.

    >>> divide(["a", "b", "c", "d", "e"], [1, 0.5])
    [('a',), ('b', 'c'), ('d', 'e')]
    """
    batches: list[tuple[str, ...]] = []
    start = 0
    while start < len(hosts):
        size = serial[min(len(batches), len(serial) - 1)] if serial else 0
        if isinstance(size, float):
            size = max(1, int(size * len(hosts)))
        end = start + (size or len(hosts))
        batches.append(tuple(hosts[start:end]))
        start = end
    return batches


class Batches(Struct):
    """The batches of a run, numbered from 0 in the order of the plays.

    Consecutive plays without batch keys are one batch. The first play that names a target decides its batch.
    """

    _batches: list[Batch] = []
    _is_last_plain: bool = False
    """Whether the last batch is of plays without batch keys."""

    def add(self, play: Batch, serial: Sequence[int | float]) -> dict[str, int]:
        """Add a play with all its servers, divided by ``serial``; return the number of each server's batch."""
        stops_no_other = play.max_fail is None and not play.fatal
        is_plain = stops_no_other and not serial
        if is_plain and self._is_last_plain:
            last = self._batches[-1]
            servers = tuple(dict.fromkeys((*last.servers, *play.servers)))
            self._batches[-1] = structs.replace(last, servers=servers)
            return dict.fromkeys(play.servers, len(self._batches) - 1)
        self._is_last_plain = is_plain
        numbers: dict[str, int] = {}
        for servers in divide(play.servers, serial):
            numbers |= dict.fromkeys(servers, len(self._batches))
            self._batches.append(structs.replace(play, servers=servers))
        return numbers

    def all(self) -> tuple[Batch, ...]:
        """Return all batches; none if no play has batch keys."""
        if self._is_last_plain and len(self._batches) == 1:
            return ()
        return tuple(self._batches)


class _Work(Struct):
    """What the plays resolved so far ask of one server."""

    server: ServerSpec
    intents: list[Intent] = []
    left_out: list[Intent] = []


class _Resolver(Struct):
    """Resolves plays, host by host and task by task."""

    hosts: Hosts
    problems: Problems
    check_only: bool
    limit: frozenset[str] = frozenset()
    work: dict[str, _Work] = {}
    batches: Batches = field(default_factory=Batches)
    played_on: set[str] = set()

    def play(self, number: int, play: Play) -> None:
        """Resolve one play, by its number, on all of its hosts."""
        with self.problems:
            hosts = self.hosts_of(play)
            if not hosts:
                return
            scope = self._play_scope(play, hosts[0])
            batches = self._batches_of(play, hosts, scope)
            self.played_on.update(hosts)
            for name in hosts:
                with self.problems:
                    if self.check_only:
                        server = self.hosts.stand_in(name)
                    else:
                        server = self.hosts.server(name, play.folder)
                    if name != hosts[0]:
                        scope = self._play_scope(play, name)
                    handlers: list[list[Handler]] = [[] for _ in play.handlers]
                    self._play_on(number, TaskContext(server, scope, play, handlers, batches[name]))

    def hosts_of(self, play: Play) -> list[str]:
        """Return the hosts of a play within the limit; none of a play without ``hosts``, which is reported itself."""
        if "hosts" not in play.data:
            return []
        node = play.node.child("hosts")
        patterns = play.data["hosts"]
        if has_pending(patterns):
            any_host = next(iter(self.hosts.inventory.hosts))
            scope = self.hosts.scope(any_host, play.folder, play.top_folder)
            patterns = render_shown(patterns, scope, node)
        inventory = self.hosts.inventory
        if inventory.single is not None:  # every pattern matches the host of --server
            matched = [inventory.single]
        else:
            matched = match_hosts(",".join(map(str, as_list(patterns))), inventory, node)
        return [name for name in matched if name in self.limit]

    def _batches_of(self, play: Play, hosts: list[str], scope: TemplateScope) -> dict[str, int]:
        """Return the number of each host's batch; problems are collected, and the tasks are still checked."""
        node = play.node
        name = str(render_shown(play.data.get("name", ""), scope, node.child("name")))
        written: dict[str, Any] = {}
        for key in BatchKeys.model_fields:
            if key in play.data:
                written[key] = play.data[key]
        if not written:
            return self.batches.add(Batch(name, tuple(hosts)), ())
        with self.problems:
            keys = read_as(BatchKeys, render_shown(written, scope, node), node)
            max_fail = keys.max_fail_percentage
            if max_fail is not None and max_fail > 100:
                why = "max_fail_percentage must be at most 100"
                place = node.child("max_fail_percentage")
                self.problems.append(place.problem(why, "use a value from 0 to 100"))
            batch = Batch(name, tuple(hosts), max_fail, bool(keys.any_errors_fatal))
            sizes: list[int | float] = []
            if keys.serial is not None:
                sizes = self._sizes(keys.serial, node.child("serial"))
            return self.batches.add(batch, sizes)
        return dict.fromkeys(hosts, 0)

    def _sizes(self, serial: Any, node: SourceNode) -> list[int | float]:
        """Return the sizes of ``serial``; problems are collected."""
        sizes: list[int | float] = []
        for index, value in enumerate(as_list(serial)):
            place = node.child(index) if isinstance(serial, list) else node
            with self.problems:
                sizes.append(_size(value, place))
        return sizes

    def _play_on(self, number: int, context: TaskContext) -> None:
        play = context.play
        for index, task in enumerate(play.handlers):  # handlers ignore tags
            handlers = task_handlers(task, context, (number, index), self.problems)
            context.handlers[index].extend(handlers)
        intents = list[tuple[Order, Intent]]()
        left_out = list[tuple[Order, Intent]]()
        for task in play.tasks:
            options = self.hosts.options
            if chosen(task.inherited.tags, options.tags, options.skip_tags):
                intents += task_intents(task, context, self.problems)
            elif self.check_only:
                made = list(task_intents(task, context, self.problems))
                left_out += made if _protects(task) else []
            elif _protects(task):
                left_out += task_intents(task, context, Problems())
        work = self.work.setdefault(context.server.name, _Work(context.server))
        # In the order of the play, in which a loop around tasks makes all of them for each item.
        for kept, ordered in ((work.intents, intents), (work.left_out, left_out)):
            ordered.sort(key=itemgetter(0))
            kept.extend(intent for _, intent in ordered)

    def _play_scope(self, play: Play, host: str) -> TemplateScope:
        """Return the names of a play on a host: those of the host, its variables, ``vars_files`` and ``database``."""
        scope = self.hosts.scope(host, play.folder, play.top_folder)
        scope = scope.with_variables(play.inherited.variables)
        if "vars_files" in play.data:
            place = play.node.child("vars_files")
            names = render_shown(play.data["vars_files"], scope, place)
            variables: list[Variable] = []
            for index, entry in enumerate(as_list(names)):
                paths = [beside(play.file, str(name)) for name in as_list(entry)]
                variables += self._vars_file(paths, play, place.child(index))
            scope = scope.with_variables(variables)
        if "database" not in play.data:
            return scope
        database = play.data["database"]
        node = play.node.child("database")
        with suppress(InputError, UsesAssetError):  # reported for the task that needs it
            # It may use a weaker variable of the same name.
            database = render_data(database, scope, node)
        return scope.with_variables([Variable("database", database, Level.PLAY_KEY, node)])

    def _vars_file(self, paths: Sequence[str], play: Play, node: SourceNode) -> list[Variable]:
        """Return the variables of the first file that exists; raises :class:`InputError` without one."""
        files = self.hosts.files
        for path in paths:
            files.check_named(path, play.inherited.files[0], node)
        path = next(filter(may_be_file, paths), "")
        if not path:
            first = next(iter(paths), "")
            raise node.error(
                f"{' or '.join(paths)}: file not found", how_to_find(first), kind="file"
            )
        document = files.document(path)
        return read_variables(document.data, Level.VARS_FILES, SourceNode(document))


def _protects(task: Task) -> bool:
    """Return whether a task that is left out keeps what it names, unless it is never run by itself."""
    return isinstance(task.args, AssetArgs | RssArgs) and chosen(task.inherited.tags, (), ())


def chosen(tags: frozenset[str], desired: Sequence[str], skipped: Sequence[str]) -> bool:
    """Return whether a task with these tags runs, by Ansible's rules for ``always`` and ``never``."""
    skip = set(skipped)
    want = set(desired)
    if _names_any(skip, tags):
        return False
    is_always = "always" in tags
    if "all" in skip and not is_always:
        return False
    if "never" in tags and not is_always:
        return bool(tags & want)
    chooses_all = not want or "all" in want
    return is_always or chooses_all or _names_any(want, tags)


def _names_any(words: set[str], tags: frozenset[str]) -> bool:
    """Return whether the words of a flag name a tag, or mean all tasks that have (or lack) tags."""
    group = "tagged" if tags else "untagged"
    return group in words or not words.isdisjoint(tags)


def tag_problems(options: ResolveOptions, plays: Sequence[Play]) -> list[Problem]:
    """Return the tags that no task has, or that `--tags` chooses no task."""
    tags_of_tasks = [task.inherited.tags for play in plays for task in play.tasks]
    known = set[str]().union(*tags_of_tasks)
    problems: list[Problem] = []
    for flag, tags in (("--tags", options.tags), ("--skip-tags", options.skip_tags)):
        for tag in tags:
            if tag not in known | _SPECIAL_TAGS:
                remedy = nearest(tag, known) or _NO_TAGS
                problems.append(
                    outside_node(flag, tag).problem(f"no task has the tag {tag!r}", remedy)
                )
    if not options.tags or not tags_of_tasks or problems:
        return problems
    if not any(chosen(tags, options.tags, options.skip_tags) for tags in tags_of_tasks):
        remedy = nearest("", known) or _NO_TAGS
        problems.append(outside_node("--tags").problem("the tags choose no task", remedy))
    return problems
