"""The modules that run something or check something: command, thumbnail, proxy, xmp_batch and assert."""

from __future__ import annotations

import os.path
from collections.abc import Callable
from pathlib import Path

from msauto.documents.document import Problems, SourceNode, SourceText
from msauto.documents.strict_model import Model
from msauto.model import desired
from msauto.playbook.input_files import LookupContext
from msauto.playbook.schema.operation_keys import AssertArgs, CommandOnly, ProxyOnly, ThumbnailOnly, XmpBatchArgs
from msauto.playbook.templates.names import TemplateFunctionError
from msauto.playbook.templates.rendering import holds, undecided
from msauto.playbook.variables import TemplateScope


def desired_operation(args: Model, node: SourceNode, task: str, lookup: LookupContext) -> desired.Desired:
    """Return the desired operation of validated arguments; raises :class:`InputError` for files that are refused."""
    source = desired.TaskSource.at(node.place, task)
    match args:
        case CommandOnly():
            return desired.DesiredCommand(source, args.name, tuple((args.params or {}).items()), args.run or "always")
        case ThumbnailOnly():
            pos, dur = (None if each is None else desired.Position(each) for each in (args.pos, args.dur))
            dest, params = check_dest(args.dest, node.child("dest"), lookup), tuple((args.params or {}).items())
            return desired.DesiredThumbnail(source, dest, pos, dur, args.w, args.h, params)
        case ProxyOnly():
            return desired.DesiredProxy(source, check_dest(args.dest, node.child("dest"), lookup), args.profile)
        case XmpBatchArgs():
            content = _batch_content(args.src, node.child("src"), lookup)
            return desired.DesiredXmpBatch(source, args.connector, args.src, content)
    raise TypeError(args)


def _batch_content(name: str, node: SourceNode, lookup: LookupContext) -> bytes:
    try:
        content = lookup.read(name)
    except TemplateFunctionError as error:
        raise node.error(str(error), error.remedy, kind="file") from error
    if not content.strip():
        raise node.error(f"the batch file {name!r} is empty", "add XMP metadata to it", kind="file")
    return content


def check_dest(name: str, node: SourceNode, lookup: LookupContext) -> str:
    """Return the path of a file to write, relative to the playbook; raises :class:`InputError` if it is refused.

    A playbook may be untrusted. It writes only inside its repository or the folders that the settings allow, after
    symbolic links are resolved, and no file that git or msauto reads.
    """
    path = Path(os.path.normpath(lookup.folder / name))
    try:
        real = path.resolve()
        roots = (lookup.root.resolve(), *(Path(each).resolve() for each in lookup.writable))
        inside = [root for root in roots if real.is_relative_to(root)]
    except (OSError, ValueError, RuntimeError) as error:
        raise node.error(f"{name!r} is not a valid file name", kind="file") from error
    if not inside:
        remedy = "use a path inside it, or allow its folder in msauto.toml: [download] folders"
        raise node.error(f"the file {name!r} would be written outside the playbook's repository", remedy, kind="file")
    hidden = next((part for part in real.relative_to(inside[0]).parts if part.startswith(".")), None)
    if hidden is not None:
        raise node.error(
            f"{name!r} contains {hidden!r}: hidden files cannot be written", "use another path", kind="file"
        )
    if name.endswith(("/", os.sep)) or real.is_dir():
        raise node.error(f"{name!r} is a folder", "add a file name", kind="file")
    if real.suffix.lower() in _READ_BY_MSAUTO:
        raise node.error(
            f"{name!r} would be read as a playbook or as settings", "use another file extension", kind="file"
        )
    return str(path)


_READ_BY_MSAUTO = frozenset({".yml", ".yaml", ".toml"})


# assert --------------------------------------------------------------------------------------------------------


def assert_all(args: AssertArgs, node: SourceNode, task: str, scope: TemplateScope) -> desired.AssertionPassed:
    """Return that all conditions hold; raises :class:`InputError` with each that does not, at its place."""
    _check_conditions(args, node, lambda condition: holds(condition, scope))
    return desired.AssertionPassed(desired.TaskSource.at(node.place, task))


def check_without_asset(args: AssertArgs, node: SourceNode, scope: TemplateScope) -> None:
    """Raise :class:`InputError` for each condition that is false for every asset."""
    _check_conditions(args, node, lambda condition: undecided((condition,), scope) is not None)


def _check_conditions(args: AssertArgs, node: SourceNode, may_hold: Callable[[SourceText], bool]) -> None:
    problems = Problems()
    for index, text in enumerate(args.that or ()):
        condition = SourceText(text, node.child("that", index))
        with problems.gather():
            if not may_hold(condition):
                why = f"the condition is false: {text}" if args.msg is None else f"{args.msg} ({text})"
                problems.add(condition.node.problem(f"assert: {why}", "fix the asset, or the condition"))
    problems.check()
