"""The modules that run something: rendered arguments to wanted values, and the files that they may touch."""

from __future__ import annotations

import os.path
from pathlib import Path
from typing import Any

from msauto.model.desired import (
    DesiredCommand,
    DesiredOperation,
    DesiredProxy,
    DesiredThumbnail,
    DesiredXmpBatch,
    Position,
    TaskSource,
)
from msauto.model.timecode import Timecode
from msauto.playbook.schema.operations import CommandOnly, ProxyOnly, ThumbnailOnly, XmpBatchArgs
from msauto.playbook.schema.validation import read_as
from msauto.playbook.templates.lookups import LookupContext, OutsideError
from msauto.playbook.yaml.document import SourceNode

TARGET_KEYS = frozenset({"title", "id", "select", "missing"})


def run_wanted(module: str, data: Any, node: SourceNode, task: str, around: LookupContext) -> DesiredOperation:
    """Return what a command or a download wants; raises :class:`InputError` with all that is wrong."""
    own = {name: value for name, value in data.items() if name not in TARGET_KEYS}
    source = TaskSource.at(node.place, task)
    if module == "command":
        return _command(read_as(CommandOnly, own, node), source)
    if module == "thumbnail":
        still = read_as(ThumbnailOnly, own, node)
        return _thumbnail(still, source, check_dest(still.dest, node.child("dest"), around))
    copy = read_as(ProxyOnly, own, node)
    return DesiredProxy(source, check_dest(copy.dest, node.child("dest"), around), copy.profile)


def _command(args: CommandOnly, source: TaskSource) -> DesiredCommand:
    return DesiredCommand(source, args.name, tuple((args.params or {}).items()), args.run or "always")


def _thumbnail(args: ThumbnailOnly, source: TaskSource, dest: str) -> DesiredThumbnail:
    params = tuple((args.params or {}).items())
    return DesiredThumbnail(source, dest, _position(args.pos), _position(args.dur), args.w, args.h, params)


def _position(timecode: Timecode | None) -> Position | None:
    return None if timecode is None else Position(timecode)


def check_dest(name: str, node: SourceNode, around: LookupContext) -> str:
    """Return the path of a file that is to be written, beside the playbook; raises where it may not be written.

    A playbook may come from somebody whom nobody trusts: it writes inside its own repository, or in the folders that
    the settings open, links followed; and nothing that git or msauto read as their own.
    """
    path = Path(os.path.normpath(around.folder / name))
    try:
        real = path.resolve()
        inside = [root for root in _roots(around) if real.is_relative_to(root)]
    except (OSError, ValueError, RuntimeError) as error:
        raise node.error(f"{name!r} cannot be the name of a file") from error
    if not inside:
        raise node.error(
            f"the file {name!r} would be written outside the playbook's repository",
            "name a place inside, or open its folder in msauto.toml: [download] folders",
        )
    hidden = next((part for part in real.relative_to(inside[0]).parts if part.startswith(".")), None)
    if hidden is not None:
        raise node.error(f"{name!r} leads to {hidden!r}, and hidden files are not written", "name another place")
    if name.endswith(("/", os.sep)) or real.is_dir():
        raise node.error(f"{name!r} is a folder, and a file is to be written", "name the file")
    if real.suffix.lower() in _READ_BY_US:
        raise node.error(f"{name!r} would be read as a playbook or as settings", "give the file another ending")
    return str(path)


_READ_BY_US = frozenset({".yml", ".yaml", ".toml"})


def _roots(around: LookupContext) -> list[Path]:
    return [around.root.resolve(), *(Path(each).resolve() for each in around.writable)]


def xmp_batch_wanted(data: Any, node: SourceNode, task: str, around: LookupContext) -> DesiredXmpBatch:
    """Return the batch, with the content of its file; raises :class:`InputError`."""
    args = read_as(XmpBatchArgs, data, node)
    try:
        content = around.read(args.src)
    except OutsideError as error:
        raise node.child("src").error(str(error), error.remedy) from error
    if not content.strip():
        raise node.child("src").error(f"the file {args.src!r} is empty", "a batch loads something")
    return DesiredXmpBatch(TaskSource.at(node.place, task), args.connector, args.src, content)
