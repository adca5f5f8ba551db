"""What a command or a program gives: what shapes a plan, the settings that hold, and where the ledger is."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field, structs

from msauto.errors import MsautoError
from msauto.file_access import LEDGER_FILES, WriteAccess, may_be_file, repository_of
from msauto.model.plan import Plan, PlanOptions
from msauto.playbook.input_files import kept_path
from msauto.playbook.settings import Settings, load_settings
from msauto.playbook.settings_file import state_folder
from msauto.primitives.iso_times import parse_datetime
from msauto.secrets.commands import SecretCommands
from msauto.secrets.redaction import Secrets, redact_lines

if TYPE_CHECKING:
    from msauto.documents.document import Document
    from msauto.ledger.ledger import LedgerPlace
    from msauto.model.result import RunDetails
    from msauto.model.server import Transport
    from msauto.playbook.hosts import NamedServer, ResolveOptions

Tell = Callable[[str], None]
"""Receives warnings and notes for the user."""


PLAYS: Final = "plays"
"""The name of a playbook that a program gives as data."""


def tell_nothing(_: str) -> None:
    """Ignore a message."""


class Inputs(Struct, frozen=True):
    """What a plan is made from, with the settings file read.

    ``given`` is what shapes a plan, without the defaults of the settings: as on the command line, in a plan file, or
    with a past run. ``typed`` is what is not from there. ``state_dir`` is the folder of this machine, and ``ledger``
    the same folder or a URL. ``agreed`` is the saved plan, whose paths start from ``base``. ``undone`` is a run of the
    ledger. ``documents`` are plays and inventories that a program gives as data, by their names.
    ``transport`` replaces the network. ``on`` is the address of a Dask cluster. ``secrets`` are those that commands
    print: no past run can name such a command.
    """

    given: PlanOptions
    settings: Settings
    ledger: LedgerPlace
    state_dir: Path
    typed: PlanOptions = field(default_factory=PlanOptions)
    given_forks: int | None = None
    agreed: Plan | None = None
    base: Path = Path()
    undone: RunDetails | None = None
    documents: Mapping[str, Document] = {}
    transport: Transport | None = None
    secrets: SecretCommands = field(default_factory=SecretCommands)
    on: str | None = None
    tell: Tell = tell_nothing

    @property
    def forks(self) -> int | None:
        """The targets at a time; ``None``: for each server, as many as it has connections."""
        return self.given_forks or self.settings.forks

    @property
    def named(self) -> tuple[str, ...]:
        """What is planned, as the history names it: the playbooks or the plan file, or the run to undo."""
        if self.typed.playbooks:
            return self.typed.playbooks
        if PLAYS in self.documents:
            return (PLAYS,)
        return (f"undo {self.given.undo}",)

    @property
    def writable(self) -> WriteAccess:
        """Where a run may write besides the repository: what the settings open, but nothing that msauto reads."""
        return writable_by(self.settings, self.state_dir)

    @property
    def outputs(self) -> WriteAccess:
        """Where the flags of a command may write."""
        return with_outputs(self.writable, (*self.given.playbooks, *self.given.inventories))

    def kept(self, secrets: Secrets, base: Path) -> PlanOptions:
        """Return what shapes the plan as a plan file keeps it: without secrets, and with paths from ``base``."""
        given = self.given
        place = partial(kept_path, base=base)
        variables = []
        for text in given.extra_vars:
            if text.startswith("@"):
                variables.append(f"@{place(text[1:])}")
            else:
                (shown,) = redact_lines((text,))
                variables.append(secrets.redact(shown))
        return structs.replace(
            given,
            playbooks=tuple(map(place, given.playbooks)),
            inventories=tuple(map(place, given.inventories)),
            config=given.config and place(given.config),
            extra_vars=tuple(variables),
            server=given.server and secrets.redact(given.server),
        )

    @property
    def resolving(self) -> ResolveOptions:
        """What the playbooks are resolved with."""
        from msauto.playbook.hosts import ResolveOptions

        given, settings = self.given, self.settings
        playbooks = (PLAYS,) if PLAYS in self.documents else given.playbooks
        inventories = (*given.inventories, *(name for name in self.documents if name != PLAYS))
        if given.server is None and not inventories:
            inventories = settings.inventories
        return ResolveOptions(
            playbooks=playbooks,
            inventories=inventories,
            server_url=given.server,
            extra_vars=given.extra_vars,
            limit=given.limit,
            tags=given.tags,
            skip_tags=given.skip_tags,
            env=dict(os.environ),
            now=parse_datetime(given.now),
            role_folders=settings.role_folders,
            lookup_folders=settings.lookup_folders,
            writable=self.writable,
            reserved=own_files(settings, self.state_dir),
            outside=settings.outside,
            secrets=self.secrets,
            documents=self.documents,
            transport=self.transport,
        )


def writable_by(settings: Settings, state_dir: Path | None = None) -> WriteAccess:
    """Return where the settings let a run write besides the repository, and what is kept from it."""
    roles = {Path(folder).resolve() for folder in settings.role_folders}
    return WriteAccess(
        tuple(map(Path, settings.download_folders)),
        own_files(settings, state_dir) | roles,
        frozenset(settings.download_endings),
    )


def own_files(settings: Settings, state_dir: Path | None) -> frozenset[Path]:
    """Return the files of msauto itself, links resolved: the settings, and what the ledger consists of."""
    own = [] if settings.file is None else [Path(settings.file)]
    if state_dir is not None:
        own += [state_dir / name for name in LEDGER_FILES]
    return frozenset(path.resolve() for path in own)


def with_outputs(writable: WriteAccess, named: Sequence[str]) -> WriteAccess:
    """Return where the flags of a command may write: also in the repositories of what it names, and of its folder.

    A command that starts in the root of the file system does not open all of it.
    """
    files = [Path(name).resolve() for name in named if os.path.isfile(name)]  # noqa: PTH113 - no error for a bad name
    roots = [repository_of(file.parent) for file in files]
    here = repository_of(Path())
    if here != Path(here.anchor):
        roots.append(here)
    return replace(writable, roots=(*roots, *writable.roots), reserved=writable.reserved | {*files})


def outputs_of(playbooks: Sequence[str], config: str | None) -> WriteAccess:
    """Return where the flags of a command may write, before its inputs are read; settings with errors open nothing."""
    try:
        settings = load_settings(config, *(Path(name).parent for name in playbooks[:1]))
    except MsautoError:
        settings = Settings()
    return with_outputs(writable_by(settings), playbooks)


def usual_playbooks(config: str | None) -> tuple[str, ...]:
    """Return what commands take that get no playbook: `playbook` of the settings, or ``playbooks/site.yml``."""
    settings = load_settings(config)
    usual = Path(settings.file or "").parent / "playbooks" / "site.yml"
    if not settings.playbooks and not may_be_file(usual):
        remedy = f"name one, or set `playbook` in msauto.toml; without it, {usual} is used where it exists"
        raise MsautoError("no playbook is named", remedy=remedy)
    return settings.playbooks or (str(usual),)


def ledger_place(given: str | None, settings: Settings) -> LedgerPlace:
    """Return where the ledger is: shared if the settings name a URL, even with ``--state-dir``; else the state folder.

    Otherwise a run with a folder of its own would not see the locks of the others.
    """
    return settings.ledger_url or state_folder(given, settings.state_dir)


def require_database(server: NamedServer, given: str | None) -> str:
    """Return the media database: the one that is given, or the host variable."""
    name = given or server.database
    if name is None:
        raise MsautoError(
            f"no media database is named for {server.spec.name}",
            remedy=f"use --database NAME; {server.spec.command('show databases')} lists them",
        )
    return name
