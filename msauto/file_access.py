"""Which files a run may write and read: the one answer for downloads, flags, exports, pages, playbooks and lookups.

A playbook may be untrusted, and so may a title of a server and a link that a checkout brings. Every path is decided
after its links are resolved, and by the names that a file system may take for the same: in any case, composed or not.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import unicodedata
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Final

from msauto.errors import MsautoError
from msauto.file_writing import is_device_name, part_beside

NO_PATH: Final = (OSError, ValueError, RuntimeError)
"""What a name that cannot be a path raises, and a loop of symbolic links."""
_NOT_THERE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EBADF, errno.ELOOP})
_MARKS: Final = (".git", "msauto.toml")
_STANDARD_STREAMS: Final = Path("/dev")


# What is there: no error where this user may not look ----------------------------------------------------------------


def may_be_there(path: str | Path) -> bool:
    """Return whether something is at a path, or may be: this user may not look. Reading it raises then."""
    try:
        Path(path).stat()
    except OSError as error:
        return error.errno not in _NOT_THERE
    except ValueError:
        return False
    return True


def may_be_file(path: str | Path) -> bool:
    """Return whether a file is at a path, or this user may not look."""
    if os.path.isfile(path):  # noqa: PTH113 - no error
        return True
    return may_be_there(path) and not os.path.exists(path)  # noqa: PTH110 - no error


def is_folder(path: str | Path) -> bool:
    """Return whether a folder is at a path, and this user may look."""
    return os.path.isdir(path)  # noqa: PTH112 - no error


def files_below(
    folder: Path, is_read: Callable[[str], bool], refuse: Callable[[OSError], None]
) -> list[Path]:
    """Return the files in a folder and below, sorted; ``refuse`` gets the error of a folder that cannot be read.

    ``is_read`` decides by the name of a file or folder whether it counts.
    """
    found: list[Path] = []
    for place, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = filter(is_read, folders)
        for name in filter(is_read, names):
            file = Path(place, name)
            if may_be_file(file):
                found.append(file)
    return sorted(found)


# Repositories ---------------------------------------------------------------------------------------------------------


def find_repository(folder: Path, *, by_name: bool = False) -> Path | None:
    """Return the nearest folder above with .git or msauto.toml, if there is one; ``by_name``: links stay."""
    if not by_name:
        folder = folder.resolve()
    for marked in (folder, *folder.parents):
        if any(may_be_there(marked / mark) for mark in _MARKS):
            return marked
    return None


def repository_of(folder: Path) -> Path:
    """Return the repository of a folder: the nearest folder above with .git or msauto.toml.

    Without one: the working folder, if it holds this one and is neither a root nor the home folder; else the parent
    of a folder named ``playbooks``; else the folder itself.
    """
    repository = find_repository(folder)
    return repository or _unmarked_repository(folder.resolve())


def _unmarked_repository(folder: Path) -> Path:
    here = Path.cwd()
    home = Path(os.path.expanduser("~")).resolve()  # noqa: PTH111 - no error where there is none
    if here in folder.parents and here not in {Path(here.anchor), home}:
        return here
    return folder.parent if folder.name == "playbooks" else folder


def repository_around(path: Path) -> Path:
    """Return the repository in which a path is by its name, before links are resolved.

    What is called a file of the repository around the working folder is one of that repository.
    """
    named = _absolute(path)
    here = find_repository(Path())
    if here is not None and named.is_relative_to(here):
        return here
    return find_repository(named.parent, by_name=True) or _unmarked_repository(named.parent)


def root_of(path: Path, roots: Iterable[Path]) -> Path | None:
    """Return the first of the folders that holds a path, with symbolic links resolved; raises :data:`NO_PATH`."""
    real = path.resolve()
    return next((root for root in map(Path.resolve, roots) if real.is_relative_to(root)), None)


def name_in_repository(path: Path) -> str:
    """Return the name under which the ledger knows a file, wherever its repository is."""
    folder = path.parent.resolve()
    base = find_repository(folder)
    real = folder / path.name
    return str(real) if base is None else real.relative_to(base).as_posix()


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 - without resolving links


# Names that programs read ---------------------------------------------------------------------------------------------

_VARIABLES: Final = frozenset({"group_vars", "host_vars"})
_INVENTORIES: Final = frozenset({"inventory", "inventories", "hosts"})
_FOLDERS_OF_PROGRAMS: Final = _VARIABLES | {
    "roles",
    "vars",
    "inventory",
    "inventories",
    "ci",
    "workflows",
    "collections",
}
_FILES_OF_PROGRAMS: Final = frozenset(
    {
        "makefile",
        "gnumakefile",
        "justfile",
        "jenkinsfile",
        "dockerfile",
        "containerfile",
        "codeowners",
        "package.json",
        "package-lock.json",
        "requirements.txt",
        "constraints.txt",
    }
)
ENDINGS_OF_PROGRAMS: Final = frozenset(
    {
        ".yml",
        ".yaml",
        ".toml",
        ".ini",
        ".cfg",
        ".conf",
        ".env",
        ".j2",
        ".tf",
        ".mk",
        ".lock",
        ".pth",
        ".py",
        ".pyc",
        ".pyi",
        ".so",
        ".dll",
        ".exe",
        ".sh",
        ".bash",
        ".bat",
        ".cmd",
        ".ps1",
        ".js",
        ".rb",
        ".pl",
        ".sqlite",
        ".sqlite3",
        ".db",
        ".pem",
        ".key",
        ".crt",
    }
)
_ENDINGS_OF_DATA: Final = frozenset({"", ".yml", ".yaml", ".json", ".ini", ".cfg", ".toml"})
"""In which an inventory may be written."""


def folded(name: str) -> str:
    """Return what names have in common that a file system may take for the same name."""
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return _visible(plain).rstrip(". ")


def _is_hidden(part: str) -> bool:
    return _visible(unicodedata.normalize("NFC", part).lstrip()).startswith(".")


def _visible(text: str) -> str:
    return "".join(sign for sign in text if not unicodedata.category(sign).startswith("C"))


def _stem_and_ending(name: str) -> tuple[str, str]:
    plain = folded(name)
    stem = plain.partition(".")[0]
    return stem, Path(plain).suffix


# Writing --------------------------------------------------------------------------------------------------------------

MEDIA_ENDINGS: Final = frozenset(
    {".png", ".jpg", ".mp4", ".mov", ".mxf", ".m4s", ".ts", ".m3u8", ".webm"}
)
"""The endings of downloads. What begins like another kind of file does not get one of these: msauto/server/media.py."""


@dataclass(frozen=True)
class Content:
    """A kind of file that msauto writes: how such a file begins, so that it may be replaced; its endings, if named.

    ``begins`` is a pattern of its first bytes. ``is_read``: another program, or msauto, is to read such a file.
    """

    name: str
    begins: bytes = rb"(?!)"
    endings: frozenset[str] | None = None
    is_read: bool = False


DOWNLOAD: Final = Content("a download", endings=MEDIA_ENDINGS)
PLAN: Final = Content("a saved plan", rb'\{\s*"format"\s*:\s*"msauto-plan"')
EVENTS: Final = Content("events", rb'\{"type":"|\Z')
EXPORTED: Final = Content(
    "an export", rb"# Exported by msauto", frozenset({".yml", ".yaml"}), is_read=True
)
PAGE: Final = Content("a page", rb"(?s)<!DOCTYPE html>\n.{0,2000}?<title>msauto: ")
REPORT: Final = Content("a report of this run")
METRICS: Final = Content("metrics", rb"\s*# HELP msauto_", frozenset({".prom"}))
SCHEDULE: Final = Content("a file of a scheduler", rb"(?s).{0,1000}?msauto", is_read=True)
_FIRST: Final = 4096
_LONGEST_PART: Final = 255


LEDGER_FILES: Final = (
    *(f"ledger.sqlite{ending}" for ending in ("", "-wal", "-shm", "-journal")),
    "locks",
    "stills",
)
"""What is in the folder of the ledger."""


@dataclass(frozen=True)
class WriteAccess:
    """Where a run writes: the repository and the folders that the settings open (``[download] folders``).

    ``reserved`` are files and folders that msauto reads, such as inventories and the ledger, links resolved.
    ``endings`` are those of downloads that the settings add.
    """

    roots: tuple[Path, ...] = ()
    reserved: frozenset[Path] = frozenset()
    endings: frozenset[str] = frozenset()

    def path(
        self, name: str, content: Content, folder: Path = Path(), read: Set[Path] = frozenset()
    ) -> Path:
        """Return the path of a file to write; raises :class:`MsautoError` for one that is refused.

        ``read`` are the files that the run has read, links resolved. The path is as it was given, or without the links
        on its way, so that a link that comes later is noticed.
        """
        try:
            given = _absolute(folder / name)
            real = given.resolve()
            root = root_of(real, self.roots)
        except NO_PATH:
            raise MsautoError(
                f"{name!r} is not a valid file name", remedy="use another path"
            ) from None
        if root is None:
            raise MsautoError(
                f"the file {name!r} would be written outside the playbook's repository",
                remedy="use a path inside it, or allow its folder in msauto.toml: [download] folders",
            )
        self._check_parts(name, given, real, root)
        if _is_too_long(real):
            raise MsautoError(
                f"{name!r} is longer than a path of this system",
                remedy="use shorter names, or fewer folders",
            )
        if os.path.isdir(real) or name.endswith(("/", os.sep)):  # noqa: PTH112 - no error for a path that is too long
            raise MsautoError(f"{name!r} is a folder", remedy="add a file name")
        self._check_name(name, real, content)
        if real in read or not self.reserved.isdisjoint((real, *real.parents)):
            raise MsautoError(
                f"{name!r} is where msauto reads or keeps files of its own",
                remedy="use another path",
            )
        return Path(os.path.normpath(folder / name)) if real == given else real

    def file(self, name: str, content: Content, *, force: bool = False) -> Path:
        """Return the path as :meth:`path` does, for a flag of a command: it also takes a pipe or a stream of ``/dev``.

        A file that is there must be one of msauto of this kind, unless ``force``.
        """
        if is_stream(name):
            return Path(name)
        path = self.path(name, content)
        if not force:
            check_replaced(path, content)
        return path

    def folder(self, name: str) -> Path:
        """Return the path of a folder to write into; raises :class:`MsautoError` for one that is refused."""
        return self.path(str(Path(name) / "export.yml"), EXPORTED).parent

    def _check_parts(self, name: str, given: Path, real: Path, root: Path) -> None:
        """Check all parts of a path below the root: as they are written, and after links are resolved."""
        written = re.split(r"[/\\]", name)
        if ".." in [part.strip() for part in written]:
            raise MsautoError(
                f"{name!r} contains '..'", remedy="name the path from the repository's own folders"
            )
        parts = _parts_below(root, real, given)
        if not Path(name).is_absolute():
            parts += [part for part in written if part not in {"", "."}]
        for part in parts:
            for piece in part.split("\\"):
                why = _why_not_a_part(piece)
                if why:
                    raise MsautoError(
                        f"{name!r} contains {piece!r}: {why}", remedy="use another path"
                    )

    def _check_name(self, name: str, real: Path, content: Content) -> None:
        """Check the last part: its ending must fit, and no program may take it for its own file."""
        stem, ending = _stem_and_ending(real.name)
        endings = content.endings
        if content is DOWNLOAD:
            endings = MEDIA_ENDINGS | self.endings
        if endings is not None and ending not in endings:
            remedy = f"end it in one of {' '.join(sorted(endings))}"
            if content is DOWNLOAD:
                remedy += ", or add its ending in msauto.toml: [download] endings"
            raise MsautoError(f"{name!r} does not have an ending of {content.name}", remedy=remedy)
        if content.is_read or ending in MEDIA_ENDINGS:
            return
        is_inventory = stem in _INVENTORIES | {"vars"} and ending in _ENDINGS_OF_DATA
        if is_inventory or ending in ENDINGS_OF_PROGRAMS or folded(real.name) in _FILES_OF_PROGRAMS:
            why = f"{name!r} would be read as a playbook, as settings or by another program"
            raise MsautoError(why, remedy="use another name and file extension")


def _why_not_a_part(part: str) -> str:
    """Return why a part of a path cannot be written; empty if it can."""
    if _is_hidden(part):
        return "hidden files cannot be written"
    if (
        part != part.rstrip(". ")
        or is_device_name(part)
        or any(not sign.isprintable() for sign in part)
    ):
        return "not every file system has such a name"
    if len(os.fsencode(part)) > _LONGEST_PART:
        return "a part of a path has at most 255 bytes"
    if folded(part) in _FOLDERS_OF_PROGRAMS:
        return "msauto or CI reads what is there"
    return ""


def _is_too_long(path: Path) -> bool:
    """Return whether this system takes no such path, or not that of the unfinished file beside it."""
    for written in (path, part_beside(path)):
        try:
            written.lstat()
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                return True
    return False


def is_stream(name: str) -> bool:
    """Return whether an operator names no file but what takes bytes as they come: a pipe, or a stream of ``/dev``."""
    path = _absolute(Path(name))
    try:
        if path.is_relative_to(_STANDARD_STREAMS):
            return not stat.S_ISBLK(path.stat().st_mode)
        return stat.S_ISFIFO(path.lstat().st_mode)
    except NO_PATH:
        return False


def check_replaced(path: Path, content: Content) -> None:
    """Raise :class:`MsautoError` if a path has a file that does not begin as msauto writes this kind of file."""
    if not os.path.lexists(path):
        return
    try:
        with open_regular(path) as file:
            if re.match(content.begins, file.read(_FIRST)):
                return
    except OSError as error:
        raise MsautoError(
            f"cannot read {path}: {error.strerror}", remedy="name another file"
        ) from error
    raise MsautoError(
        f"{path} exists, and is not {content.name} that msauto wrote",
        remedy="remove it, or name another file",
    )


def why_not_in_place(path: Path) -> str:
    """Return why a planned path no longer leads where it led: a folder on its way has become a link."""
    named = _absolute(path)
    real = named.parent.resolve()
    return "" if real == named.parent else f"a folder on its way is now a link, to {real}"


# Reading --------------------------------------------------------------------------------------------------------------


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file to read; raises ``OSError`` for a device, a pipe, and a link that was put in its place."""
    real = path.resolve(strict=True)
    flags = (
        os.O_RDONLY
        | getattr(os, "O_NOFOLLOW", 0)
        | getattr(os, "O_NONBLOCK", 0)
        | getattr(os, "O_BINARY", 0)
    )
    file = os.fdopen(os.open(real, flags), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is a device or a pipe")
    return file


def _parts_below(root: Path, real: Path, written: Path) -> list[str]:
    """Return the parts of a path below the root that holds it: links resolved, and as written if that is below, too.

    Raises ``ValueError`` if the root does not hold it: then nothing of it would be checked.
    """
    parts = [*real.relative_to(root).parts]
    if written.is_relative_to(root):
        parts += written.relative_to(root).parts
    return parts


def leads_out(path: Path, roots: Iterable[Path]) -> bool:
    """Return whether links on the way of a path lead out of the repository that it is in by its name, and of ``roots``.

    A path that cannot be resolved leads nowhere.
    """
    try:
        return root_of(path, (repository_around(path), *roots)) is None
    except NO_PATH:
        return False


_HOST_VARIABLES: Final = (
    "use the variable by its name, or that of another host: hostvars['HOST'].NAME"
)
_PLAN_OR_LEDGER: Final = (
    (
        rb"\s*\{\s*\"format\"\s*:\s*\"msauto-plan\"",
        "a saved plan",
        "msauto report and msauto history show what ran",
    ),
    (
        rb"SQLite format 3\0|\x37\x7f\x06[\x82\x83]|\xd9\xd5\x05\xf9",
        "a ledger",
        "msauto history shows what ran",
    ),
)


_LARGEST_INVENTORY: Final = 8 * 2**20
_MAPPING: Final = rb"\b[\"']?[ \t]*:[ \t]*(?:#[^\n]{0,80})?(?:\{|\r?\n\s*[^\s\-\[])"
_KEYS_OF_INVENTORIES: Final = (rb"\b(?:hosts|children)" + _MAPPING, rb"\b(?:server|all)" + _MAPPING)
"""Mappings that an inventory has; a list of hosts of a show is data."""


def why_not_looked_up(path: Path, root: Path, reserved: Set[Path]) -> tuple[str, str] | None:
    """Return why ``lookup`` does not read a path below a root, and what to use instead; ``None`` if it does.

    ``reserved`` are inventories, settings and what the ledger consists of, links resolved.
    """
    real = path.resolve()
    parts = _parts_below(root.resolve(), real, _absolute(path))
    for part in parts:
        if _is_hidden(part):
            return f"{part!r} is hidden", "copy what is needed into a file that is not hidden"
        if folded(part) in _VARIABLES:
            return f"{part!r} holds the variables of hosts and groups", _HOST_VARIABLES
        if folded(part) == "msauto.toml":
            return "these are the settings of msauto", "write the value into a variable of the play"
    stem, ending = _stem_and_ending(real.name)
    folders = {folded(part) for part in parts[:-1]}
    is_inventory = stem in _INVENTORIES and ending in _ENDINGS_OF_DATA
    is_beside_one = not folders.isdisjoint({"inventory", "inventories"})
    if is_inventory or is_beside_one or not reserved.isdisjoint((real, *real.parents)):
        return "msauto reads it as an inventory, as settings or as its ledger", _HOST_VARIABLES
    return None


def why_not_shown(content: bytes) -> tuple[str, str] | None:
    """Return why ``lookup`` does not show a content: that of a plan, a ledger or an inventory; ``None`` if it does."""
    for begins, what, instead in _PLAN_OR_LEDGER:
        if re.match(begins, content.removeprefix(b"\xef\xbb\xbf")):
            return f"it is {what}", instead
    is_small = len(content) <= _LARGEST_INVENTORY
    if is_small and all(re.search(key, content) for key in _KEYS_OF_INVENTORIES):
        return "it is an inventory", _HOST_VARIABLES
    return None
