"""Reads the files of a run: each once, with its SHA-256, and only inside the repository and allowed folders."""

from __future__ import annotations

import hashlib
import json
import os.path
import re
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct, field

from msauto.documents.document import Document, Problems, SourceNode, outside_node
from msauto.errors import InputError, MsautoError, RefusedError
from msauto.file_access import (
    DOWNLOAD,
    NO_PATH,
    WriteAccess,
    find_repository,
    leads_out,
    may_be_file,
    may_be_there,
    open_regular,
    repository_around,
    repository_of,
    root_of,
    why_not_looked_up,
    why_not_shown,
)
from msauto.model.desired import InputFile
from msauto.playbook.templates.names import SecretTracker, TemplateFunctionError
from msauto.secrets.commands import SecretCommands

_MOST_MIB = 64
"""The largest file that is read: a table of 300,000 rows. YAML has a smaller limit of its own."""
_LARGE = 1_000_000
"""Larger files are not searched for secrets: if there are secrets at all, such a file may hold one."""
_VAULT = b"$ANSIBLE_VAULT;"
_OTHER_FORMATS = (
    (
        rb"(?:\s|[#;][^\n]*\n)*\[[\w.:-]+\][ \t]*(?:\r?\n|$)",
        "a file in the INI format of Ansible, or TOML",
        "write an inventory as YAML: all: children: GROUP: hosts: HOST: server: {url: …}",
    ),
    (
        rb'(?:\s|(?:#|//)[^\n]*\n)*(?:terraform|provider|resource|variable|data|module|output|locals)(?:\s+"[^"]*")*\s*\{',
        "a Terraform file",
        "write a playbook in its place: msauto doc play",
    ),
    (
        rb"\x1f\x8b|PK\x03\x04|\x89PNG|%PDF",
        "a compressed or binary file",
        "unpack it, or save it as text",
    ),
    (rb"\s*<[\w!?]", "a web page or XML", "save the file itself, not the page that shows it"),
    (
        rb"-----BEGIN |age-encryption\.org/",
        "an encrypted file or a key",
        "decrypt it before msauto reads it",
    ),
    (rb"version https://git-lfs", "a pointer of Git LFS", "git lfs pull"),
)
"""What other formats begin with, what they are called, and what to do. Linear: no two parts match the same sign."""
_BEGINNING = 2**16
_CONFLICT = b"\n<<<<<<< "


_LEADS_OUT = "a link leads out of the repository"
_INSIDE = "copy the file into the repository, or allow its folder in msauto.toml: [lookup] folders"


class Files:
    """The files of one run. Paths are kept as given, so that messages and plans show them as typed.

    ``opened`` are folders outside the repository that playbooks may read (``[lookup] folders``). ``given`` are
    documents that a program gives as data, by their names.
    ``tracker`` knows the secrets of the run, at first those in the files; ``problems`` collects what is wrong with it,
    at first the flaws of the texts.
    """

    def __init__(
        self, opened: Sequence[str] = (), given: Mapping[str, Document] = MappingProxyType({})
    ) -> None:
        self.given = given
        self.tracker = SecretTracker()
        self.problems = Problems()
        self.headers: dict[tuple[str, ...], dict[str, None]] = {}
        """The places of the headers of CSV files that were read, by their names."""
        self.looked_up: set[Path] = set()
        """The files whose content ``lookup`` may show."""
        self.places: set[Path] = set()
        """Where the files are that were read."""
        self._opened = opened
        self._bytes: dict[str, bytes] = {}
        self._documents: dict[str, Document] = {}

    def check_named(self, path: str, playbook: str, node: SourceNode) -> None:
        """Raise unless a playbook may name a file: in its repository or an allowed folder, symbolic links resolved.

        A playbook may be untrusted, and can send the content of a file anywhere.
        """
        with suppress(*NO_PATH):
            folders = (repository_of(Path(playbook).parent), *map(Path, self._opened))
            if root_of(Path(path), folders) is not None:
                return
        raise node.error(
            f"{path}: the file is outside the playbook's repository", _INSIDE, kind="file"
        )

    def check_inside(self, path: str, folder: Path) -> None:
        """Raise :class:`InputError` if links lead a file of a folder out of the repository of the folder."""
        with suppress(*NO_PATH):
            roots = (repository_around(folder / "file"), *map(Path, self._opened))
            if root_of(Path(path), roots) is None:
                raise outside_node(path).error(
                    f"the file cannot be read: {_LEADS_OUT}", _INSIDE, kind="file"
                )

    def read(self, path: str) -> bytes:
        """Return the bytes of a file; raises :class:`InputError`."""
        if path in self._bytes:
            return self._bytes[path]
        if path in self.given:
            content = json.dumps(self.given[path].data).encode()
        else:
            content = _read(path, [Path(folder) for folder in self._opened])
            self.places.add(Path(path).resolve())
        self._bytes[path] = content
        return content

    def names(self, folder: Path, pattern: str) -> list[str]:
        """Return the names of the files in a folder that match, sorted; raises ``OSError``."""
        names: list[str] = []
        for file in folder.iterdir():
            is_hidden = file.name.startswith(".") and not pattern.startswith(".")
            if not is_hidden and fnmatchcase(file.name, pattern) and may_be_file(file):
                names.append(file.name)
        return sorted(names)

    def document(self, path: str) -> Document:
        """Return a YAML file with its places; raises :class:`InputError` for a flaw that leaves a value unknown."""
        document = self.flawed(path)
        if document.broken:
            raise InputError(document.flaws)
        return document

    def flawed(self, path: str) -> Document:
        """Return a YAML file as far as it can be read; its flaws are among the problems."""
        if path not in self._documents:
            # It brings the parser of YAML, which settings do not need.
            from msauto.documents.loader import parse_yaml

            content = self.read(path)
            if path not in self.given:
                _refuse_other_formats(path, content)
            document = self._documents[path] = self.given.get(path) or parse_yaml(content, path)
            self.tracker.add_tagged(document.data)
            self.problems.extend(document.flaws)
        return self._documents[path]

    def inputs(self, playbooks: Sequence[str] = ()) -> tuple[InputFile, ...]:
        """Return all files that were read so far, in order of reading; their paths are kept as of the playbooks."""
        base = base_of(playbooks)
        inputs: list[InputFile] = []
        for path, data in self._bytes.items():
            kept = path if path in self.given else kept_path(path, base)
            searched = data if len(data) <= _LARGE else None
            inputs.append(InputFile(kept, hashlib.sha256(data).hexdigest(), searched))
        return tuple(inputs)


class LookupContext(Struct, frozen=True):
    """What templates may read: the environment, and files inside the repository of the playbook.

    ``opened`` are further folders that the settings open (``[lookup] folders``); ``writable`` is where downloads may be
    written besides. ``reserved`` are inventories, settings and the ledger. ``first`` is the folder of
    files of a role.
    """

    env: Mapping[str, str]
    files: Files
    folder: Path
    root: Path
    opened: Sequence[str] = ()
    writable: WriteAccess = field(default_factory=WriteAccess)
    secrets: SecretCommands = field(default_factory=SecretCommands)
    first: Path | None = None
    reserved: frozenset[Path] = frozenset()

    def secret(self, name: str) -> str:
        """Return a secret that a command prints; every output hides it. Raises :class:`TemplateFunctionError`."""
        try:
            text = self.secrets.secret(name)
        except RefusedError:
            raise
        except MsautoError as error:
            raise TemplateFunctionError(error.message, error.remedy, kind="secret") from None
        self.files.tracker.secrets.add(text)
        return text

    def read(self, name: str) -> bytes:
        """Return the bytes of a file beside the playbook; raises :class:`TemplateFunctionError` for one outside."""
        content = self.content(name)
        if self.files.tracker.secrets.occurs_in(content.decode("utf-8", "replace")):
            self.files.tracker.touched = True
        return content

    def content(self, name: str) -> bytes:
        """Return the bytes as :meth:`read` does, whether or not they hold a secret."""
        path = self._within(name)
        try:
            content = self.files.read(str(path))
        except InputError as error:
            (problem,) = error.problems
            remedy = problem.remedy if os.path.lexists(path) else self._instead(name)
            raise TemplateFunctionError(f"{name!r}: {problem.message}", remedy) from error
        if path not in self.files.looked_up:
            self._refuse(name, why_not_shown(content))
            self.files.looked_up.add(path)
        return content

    def matching(self, pattern: str) -> list[str]:
        """Return the paths of the files of one folder whose names match, sorted; raises as :meth:`read`."""
        folder, slash, names = pattern.rpartition("/")
        try:
            matches = self.files.names(self._within(folder + slash), names)
        except OSError as error:
            remedy = "correct the path; only its last part may contain * ? [ ]"
            raise TemplateFunctionError(
                f"cannot read the folder {folder!r}: {error.strerror}", remedy
            ) from error
        for name in matches:
            self._within(folder + slash + name)  # a symbolic link may lead out
        return [folder + slash + name for name in matches]

    def shown(self, name: str) -> str:
        """Return the path of a file as messages show it."""
        return os.path.normpath(self._path(name))

    def _path(self, name: str) -> Path:
        """Return where a file is: in the folder of files of the role, else beside the playbook."""
        if self.first is not None and may_be_there(self.first / name):
            return self.first / name
        return self.folder / name

    def _within(self, name: str) -> Path:
        """Return a path beside the playbook; raises :class:`TemplateFunctionError` for one outside."""
        try:
            path = self._path(name)
            root = root_of(path, (self.root, *map(Path, self.opened)))
        except NO_PATH as error:
            raise TemplateFunctionError(
                f"cannot read the file {name!r}", "name a file of the repository"
            ) from error
        if root is None:
            remedy = "copy it there, or open its folder in msauto.toml: [lookup] folders"
            raise TemplateFunctionError(
                f"the file {name!r} is outside the playbook's repository", remedy
            )
        self._refuse(name, why_not_looked_up(path, root, self.reserved))
        return path

    def _refuse(self, name: str, why: tuple[str, str] | None) -> None:
        if why is not None:
            raise TemplateFunctionError(f"lookup does not read {name!r}: {why[0]}", why[1])

    def _instead(self, name: str) -> str:
        """Return the remedy for a path that does not exist: one that starts from the playbook, not from elsewhere."""
        for base in (self.root, Path()):
            file = base / name
            with suppress(*NO_PATH):
                if file.is_file() and root_of(file, (self.root, *map(Path, self.opened))):
                    works = os.path.relpath(file.resolve(), self.folder.resolve())
                    return f"write {works!r}: paths start from the folder of the playbook"
        return how_to_find(str(self.folder / name), name)

    def text(self, name: str) -> str:
        """Return the text of a file; raises as :meth:`read`."""
        try:
            return self.read(name).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise TemplateFunctionError(
                f"the file {name!r} is not UTF-8", "save it as UTF-8"
            ) from error

    def load(self, name: str, node: SourceNode) -> bytes:
        """Return the bytes as :meth:`read` does; raises :class:`InputError` at the place of the name."""
        try:
            return self.read(name)
        except TemplateFunctionError as error:
            raise node.error(str(error), error.remedy, kind="file") from error

    def dest(self, name: str, node: SourceNode) -> str:
        """Return the path of a file to write, relative to the playbook; raises :class:`InputError` if it is refused.

        A playbook may be untrusted, and so may the texts of a server in it: :meth:`WriteAccess.path` decides.
        """
        try:
            return self.written(name)
        except TemplateFunctionError as error:
            raise node.error(str(error), error.remedy, kind="file") from None

    def written(self, name: str) -> str:
        """Return the path as :meth:`dest` does; raises :class:`TemplateFunctionError`."""
        roots = (self.root, *self.writable.roots)
        access = replace(
            self.writable, roots=roots, reserved=self.writable.reserved | self.reserved
        )
        try:
            return str(access.path(name, DOWNLOAD, self.folder, self.files.places))
        except MsautoError as error:
            raise TemplateFunctionError(error.message, error.remedy) from None


def _refuse_other_formats(path: str, content: bytes) -> None:
    beginning = content[:_BEGINNING]
    for pattern, name, remedy in _OTHER_FORMATS:
        if re.match(pattern, beginning):
            raise outside_node(path).error(
                f"this is {name}; msauto reads YAML", remedy, kind="file"
            )
    if content.startswith(_CONFLICT[1:]) or _CONFLICT in content:
        why = "this is a file with a merge conflict (<<<<<<<); msauto reads YAML"
        raise outside_node(path).error(why, "choose one version, and remove the marks", kind="file")


def _read(path: str, opened: Sequence[Path]) -> bytes:
    """Return the bytes of a regular file; a link must not lead out of the repository, or the opened folders."""
    file = Path(path)
    try:
        why, remedy = _why_not_read(file, opened)
        if not why:
            content = _bytes_of(file)
            if not content.startswith(_VAULT):
                return content
            why = "it is encrypted with ansible-vault"
            remedy = f'declare in msauto.toml: [secrets] NAME = {{command = ["ansible-vault", "view", "{path}"]}}'
            remedy += ", and write !secret {name: NAME} where it is used"
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        remedy = "check its permissions, or use another file"
    raise outside_node(path).error(f"the file cannot be read: {why}", remedy, kind="file")


def folder_not_read(folder: str, error: OSError) -> InputError:
    """Return the error of a folder that this user may not read."""
    remedy = "check its permissions"
    return outside_node(folder).error(
        f"the folder cannot be read: {error.strerror}", remedy, kind="file"
    )


def _why_not_read(file: Path, opened: Sequence[Path]) -> tuple[str, str]:
    """Return why a file is not opened at all, and what to do; empty if it is. Raises where this user may not look."""
    if not may_be_there(file):
        return "not found", how_to_find(str(file))
    status = file.stat()
    if stat.S_ISDIR(status.st_mode):
        return "it is a folder", "use a file in it"
    if not stat.S_ISREG(status.st_mode):
        return "it is a device or a pipe", "save its content as a file"
    size = status.st_size
    if size > _MOST_MIB * 2**20:
        why = f"its size is {-(-size // 2**20)} MiB, and the limit is {_MOST_MIB} MiB"
        return why, "split it, or read a table with lookup('csv', …)"
    if leads_out(file, opened):
        return _LEADS_OUT, _INSIDE
    return "", ""


def _bytes_of(file: Path) -> bytes:
    with open_regular(file) as content:
        return content.read(_MOST_MIB * 2**20)


def is_encrypted(file: Path) -> bool:
    """Return whether ansible-vault has encrypted a file; false where that cannot be read."""
    try:
        with open_regular(file) as content:
            return content.read(len(_VAULT)) == _VAULT
    except OSError:
        return False


def how_to_find(path: str, shown: str = "") -> str:
    """Return the remedy for a path that does not exist, ``shown`` as it was written: a similar name, or the folder."""
    folder = Path(path).parent
    try:
        if Path(path).is_symlink():
            return "it is a link to a file that does not exist: correct the link"
        if not folder.is_dir():
            return f"folder {str(folder)!r} not found: correct the path"
        from difflib import get_close_matches

        near = get_close_matches(Path(path).name, [file.name for file in folder.iterdir()], 1, 0.8)
    except (OSError, ValueError):
        return "correct the path"
    if near:
        return f"did you mean {beside(str(Path(shown or path)), near[0])!r}?"
    remedy = "correct the path, or create it"
    if os.path.isabs(path):  # noqa: PTH117 - of a text
        return remedy
    return f"{remedy} in {Path.cwd() / folder}"


def beside(file: str, name: str) -> str:
    """Return the path of a file that another file names, relative to that file."""
    return os.path.normpath(os.path.join(os.path.dirname(file), os.path.expanduser(name)))  # noqa: PTH111, PTH118, PTH120 - keeps what was typed


def base_of(playbooks: Sequence[str]) -> Path:
    """Return the folder from which a plan names files: the repository of the playbooks, else the working folder."""
    folder = Path(playbooks[0]).parent if playbooks else Path()
    return find_repository(folder) or Path.cwd()


def kept_path(path: str, base: Path | None) -> str:
    """Return a path as a plan keeps it: from ``base``; absolute outside of it, or without a base."""
    full = Path(os.path.abspath(path))  # noqa: PTH100 - keeps the name of a symbolic link
    real = full.parent.resolve() / full.name
    if base is not None and real.is_relative_to(base):
        return real.relative_to(base).as_posix()
    return str(real)
