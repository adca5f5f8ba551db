"""The modules that run something or check something: command, thumbnail, proxy, xmp_batch and assert."""

from __future__ import annotations

import os.path
from collections.abc import Iterator
from pathlib import Path

from msauto.errors import Problem
from msauto.model.desired import (
    AssertionPassed,
    DesiredCommand,
    DesiredProxy,
    DesiredThumbnail,
    DesiredXmpBatch,
    Position,
    TaskSource,
)
from msauto.model.timecode import Timecode
from msauto.playbook.schema.operation_keys import AssertArgs, CommandOnly, ProxyOnly, ThumbnailOnly, XmpBatchArgs
from msauto.playbook.schema.strict_model import Model
from msauto.playbook.tasks.plays import Condition
from msauto.playbook.templates.conditions import holds, undecided
from msauto.playbook.templates.lookups import LookupContext
from msauto.playbook.templates.secret_tracking import TemplateFunctionError
from msauto.playbook.variables.variables import TemplateScope
from msauto.playbook.yaml.document import Problems, SourceNode


def desired_operation(
    args: Model, node: SourceNode, task: str, lookup: LookupContext
) -> DesiredCommand | DesiredThumbnail | DesiredProxy | DesiredXmpBatch:
    """Return the desired operation of validated arguments; raises :class:`InputError` for files that are refused."""
    source = TaskSource.at(node.place, task)
    if isinstance(args, CommandOnly):
        return DesiredCommand(source, args.name, tuple((args.params or {}).items()), args.run or "always")
    if isinstance(args, ThumbnailOnly):
        dest, params = check_dest(args.dest, node.child("dest"), lookup), tuple((args.params or {}).items())
        return DesiredThumbnail(source, dest, _position(args.pos), _position(args.dur), args.w, args.h, params)
    if isinstance(args, ProxyOnly):
        return DesiredProxy(source, check_dest(args.dest, node.child("dest"), lookup), args.profile)
    if isinstance(args, XmpBatchArgs):
        return DesiredXmpBatch(source, args.connector, args.src, _batch_content(args.src, node.child("src"), lookup))
    raise TypeError(args)


def _position(timecode: Timecode | None) -> Position | None:
    return None if timecode is None else Position(timecode)


def _batch_content(name: str, node: SourceNode, lookup: LookupContext) -> bytes:
    try:
        content = lookup.read(name)
    except TemplateFunctionError as error:
        raise node.error(str(error), error.remedy) from error
    if not content.strip():
        raise node.error(f"the batch file {name!r} is empty", "add XMP metadata to it")
    return content


def check_dest(name: str, node: SourceNode, lookup: LookupContext) -> str:
    """Return the path of a file to write, relative to the playbook; raises :class:`InputError` if it is refused.

    A playbook may be untrusted. It writes only inside its repository or the folders that the settings allow, after
    symbolic links are resolved, and no file that git or msauto reads.
    """
    path = Path(os.path.normpath(lookup.folder / name))
    try:
        real = path.resolve()
        inside = [root for root in _roots(lookup) if real.is_relative_to(root)]
    except (OSError, ValueError, RuntimeError) as error:
        raise node.error(f"{name!r} is not a valid file name") from error
    if not inside:
        raise node.error(
            f"the file {name!r} would be written outside the playbook's repository",
            "use a path inside it, or allow its folder in msauto.toml: [download] folders",
        )
    hidden = next((part for part in real.relative_to(inside[0]).parts if part.startswith(".")), None)
    if hidden is not None:
        raise node.error(f"{name!r} contains {hidden!r}: hidden files cannot be written", "use another path")
    if name.endswith(("/", os.sep)) or real.is_dir():
        raise node.error(f"{name!r} is a folder", "add a file name")
    if real.suffix.lower() in _READ_BY_MSAUTO:
        raise node.error(f"{name!r} would be read as a playbook or as settings", "use another file extension")
    return str(path)


_READ_BY_MSAUTO = frozenset({".yml", ".yaml", ".toml"})


def _roots(lookup: LookupContext) -> list[Path]:
    return [lookup.root.resolve(), *(Path(each).resolve() for each in lookup.writable)]


# assert --------------------------------------------------------------------------------------------------------


def assert_all(args: AssertArgs, node: SourceNode, task: str, scope: TemplateScope) -> AssertionPassed:
    """Return that all conditions hold; raises :class:`InputError` with each that does not, at its place."""
    problems = Problems()
    for condition in _conditions(args, node):
        with problems.gather():
            if not holds(condition, scope):
                problems.add(_failure(condition, args.msg))
    problems.check()
    return AssertionPassed(TaskSource.at(node.place, task))


def check_without_asset(args: AssertArgs, node: SourceNode, scope: TemplateScope) -> None:
    """Raise :class:`InputError` for each condition that is false for every asset."""
    problems = Problems()
    for condition in _conditions(args, node):
        with problems.gather():
            if undecided((condition,), scope) is None:
                problems.add(_failure(condition, args.msg))
    problems.check()


def _conditions(args: AssertArgs, node: SourceNode) -> Iterator[Condition]:
    for index, text in enumerate(args.that or ()):
        yield Condition(text, node.child("that", index))


def _failure(condition: Condition, message: str | None) -> Problem:
    text = f"{message} ({condition.text})" if message is not None else f"the condition is false: {condition.text}"
    return condition.node.problem(f"assert: {text}", "fix the asset, or the condition")
