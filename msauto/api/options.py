"""The options that the commands and the library share: each is declared once, as a row of ``OPTIONS``.

The flags are made from the rows (:mod:`msauto.cli.flags`), and so are the checks of keywords, and what saved plans keep
(:mod:`msauto.api.keywords`). Help and completion need the rows alone, so that this module imports nothing.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Option(NamedTuple):
    """One option: its keyword, which is also the name of the command's parameter, and what it takes.

    ``kind`` is a key of :data:`msauto.api.keywords.KINDS`.
    ``usage`` and ``help`` are those of the flag; an option without them has no flag, or a command declares it alone.
    ``field`` is its place in ``PlanOptions``, and so in a saved plan. ``fixed``: it cannot change a saved plan.
    ``repeated``: the command that continues a run has it again. ``consent``: it is a field of ``RunOptions``.
    ``selects``: an empty list of it would select everything.
    """

    keyword: str
    kind: str
    usage: str = ""
    help: str = ""
    field: str = ""
    fixed: bool = False
    repeated: bool = False
    consent: bool = False
    selects: bool = False

    @property
    def names(self) -> list[str]:
        """The names of the flag, such as ``-i`` and ``--inventory``."""
        return [word.rstrip(",") for word in self.usage.split() if word.startswith("-")]

    @property
    def metavar(self) -> str | None:
        """The value of the flag in the help; ``None`` if it takes none."""
        last = self.usage.rpartition(" ")[2]
        return None if last.startswith("-") else last


_ROWS: Final = (
    Option("playbooks", "playbooks"),
    Option(
        "inventory", "sources", "-i, --inventory FILE|DIR", "Inventory (repeatable).", "inventories", repeated=True
    ),
    Option("server", "name", "--server URL", "Only this server; -i gives its variables.", "server", repeated=True),
    Option(
        "extra_vars", "variables", "-e, --extra-vars K=V|@FILE", "Variables of highest precedence.", "extra_vars",
        repeated=True,
    ),
    Option("limit", "text", "-l, --limit PATTERN", "Only these hosts.", "limit", fixed=True, repeated=True),
    Option(
        "tags", "tags", "-t, --tags TAGS", "Only tasks with one of these tags.", "tags",
        fixed=True, repeated=True, selects=True,
    ),
    Option(
        "skip_tags", "tags", "--skip-tags TAGS", "No tasks with one of these tags.", "skip_tags",
        fixed=True, repeated=True,
    ),
    Option(
        "target", "texts", "--target TITLE", "Only these targets, such as 'EP*' (repeatable).", "targets",
        fixed=True, selects=True,
    ),
    Option(
        "forget_pending", "switch", "--forget-pending",
        "Drop what earlier runs left pending (handlers, what is in doubt).", "forget_pending", fixed=True,
    ),
    Option("undo", "name", field="undo"),
    Option("forks", "forks", "-f, --forks N", "Targets at a time (default: connections)."),
    Option("state_dir", "path", "--state-dir DIR", "Folder of the ledger.", repeated=True),
    Option(
        "config", "path", "--config FILE", "Settings, instead of the nearest msauto.toml.", "config", repeated=True
    ),
    Option(
        "secret_commands", "switch", "--secret-commands",
        "Run the commands that print secrets: [secrets] in msauto.toml.",
    ),
    Option(
        "on", "cluster", "--on dask://HOST:PORT", "Work on the workers of this Dask cluster (also tls://).",
        repeated=True,
    ),
    Option("keep_going", "switch", "--keep-going", "Leave out targets in error (a run ends with 3).", consent=True),
    Option("allow_delete", "count", "--allow-delete N", "Assets that the run may delete.", consent=True),
    Option("allow_remove", "count", "--allow-remove N", "List items that the run may lose.", consent=True),
    Option("allow_requests", "count", "--allow-requests N", "Requests that the run may send.", consent=True),
    Option(
        "override_freeze", "text", "--override-freeze REASON", "Apply during a freeze; the reason is recorded.",
        consent=True,
    ),
    Option("lock_timeout", "seconds", "--lock-timeout SECONDS", "Wait for another run.", consent=True),
    Option(
        "window", "hours", "--window HH:MM-HH:MM",
        "Begin targets only in these hours, such as 23:00-05:30, in the time zone `tz` of msauto.toml.", consent=True,
    ),
    Option("database", "name", "-d, --database NAME", "Media database (default: variable `database`)."),
    Option("title", "texts", selects=True),
    Option("folder", "texts", selects=True),
    Option("channel", "texts", selects=True),
    Option("recursive", "switch"),
    Option("links", "switch"),
    Option("force", "switch"),
    Option("all", "switch"),
    Option("format", "text"),
    Option("origin", "text"),
    Option("run", "name"),
    Option("batch", "name"),
    Option("out", "path"),
    Option("content", "path"),
    Option("since", "age"),
    Option("fault", "texts"),
    Option("observer", "observer"),
    Option("transport", "transport"),
    Option("play", "loaded"),
    Option("plan", "plan"),
)  # fmt: skip
OPTIONS: Final = {option.keyword: option for option in _ROWS}
"""The options by their keywords."""
