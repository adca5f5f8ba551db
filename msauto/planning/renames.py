"""Renames: which titles a clip may still have (``was``), and what happens where tasks pass titles on.

The interface renames one clip at a time by its title, and the targets of a run do not wait for each other. So:

- In a **chain**, a task gives the former title of one clip to another (``B`` was ``A``, and ``C`` was ``B``). While the
  clip with the title ``B`` has not become ``C``, the clip ``A`` is left out of the run: each run takes one step. A
  former title that another task passes on means the clip only while that other clip still has its own former title.
- In an **exchange**, two tasks give each other's title (``A`` was ``B``, and ``B`` was ``A``), or several in a circle.
  No order of requests leads there without a third title, so it is an error.
- One former title of two titles is an error as well: it is not known which clip is meant.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

from msgspec import Struct

from msauto.aspects.plan_builder import refuse
from msauto.errors import PlanningError
from msauto.model.desired import Intent, TaskSource, TitleRef
from msauto.model.live import Asset

TitleKey = tuple[str, str]
"""Database and title, equal for names of one clip."""


class PostponedError(Exception):
    """A target is left out of this run; the message is the warning that explains it."""


class Rename(Struct, frozen=True):
    """The titles that one clip may have: the one it is to have, and former ones.

    ``passed_on`` are former titles that another task gives to another clip, each with the oldest titles of that clip.
    ``next_titles``: the new title of the clip that has this title now, the new title of the clip that has that one,
    and so on.
    """

    title: str
    was: tuple[str, ...] = ()
    passed_on: Mapping[str, tuple[str, ...]] = {}
    next_titles: tuple[str, ...] = ()

    async def sought(
        self, read: Callable[[str], Awaitable[Asset | None]], source: TaskSource
    ) -> Sequence[str]:
        """Return the titles to look for where tasks pass titles on.

        Raises ``PostponedError`` where the new title is still taken.
        """

        async def existing(titles: Sequence[str]) -> list[str]:
            return [title for title in titles if await read(title) is not None]

        titles = [self.title, *self.was]
        if await read(self.title) is None:
            for former, oldest in self.passed_on.items():
                if await read(former) is not None and not await existing(oldest):
                    raise refuse(
                        f"{former!r} may be the clip to rename to {self.title!r}, or the one that had the title "
                        f"{oldest[0]!r}: no clip with another of these titles exists",
                        source,
                        f"remove {former!r} from `was` where that clip is renamed already",
                    )
            return titles
        must_wait = self.next_titles and await existing(self.was)
        if must_wait and len(await existing(self.next_titles)) < len(self.next_titles):
            raise PostponedError(
                f"{self.title}: left out of this run: another clip has this title until it is renamed to "
                f"{self.next_titles[0]!r}, and targets of one run do not wait for each other; run the playbook twice"
            )
        return [title for title in titles if title not in self.passed_on]


class Renames:
    """All renames of a run: the former titles of each title, and the titles that tasks give to each former one."""

    def __init__(self, intents: Sequence[Intent], key: Callable[[str, str], TitleKey]) -> None:
        self._key = key
        self._was: dict[TitleKey, list[str]] = {}
        self._claims: dict[TitleKey, list[tuple[str, TaskSource]]] = {}
        for intent in intents:
            ref = intent.ref
            if not isinstance(ref, TitleRef) or not ref.was:
                continue
            own_key = key(ref.database, ref.title)
            for title in ref.was:
                if title == ref.title:
                    continue
                was = self._was.setdefault(own_key, [])
                if title not in was:
                    was.append(title)
                # Another normalization form of the title is left out: the server may know only that one.
                former = key(ref.database, title)
                if former != own_key:
                    self._claims.setdefault(former, []).append((ref.title, intent.source))

    def current_title(self, database: str, title: str) -> str:
        """Return the title that a task gives to the clip that has this title."""
        key = self._key(database, title)
        if key in self._was or key not in self._claims:
            return title
        return self._claims[key][0][0]

    def of(self, database: str, title: str) -> Rename:
        """Return the titles of the clip that is to have a title."""
        key = self._key(database, title)
        was = self._was.get(key, [])
        passed_on: dict[str, tuple[str, ...]] = {}
        for former in was:
            oldest = self._oldest(database, former) if self._key(database, former) != key else ()
            if oldest:
                passed_on[former] = oldest
        next_titles: list[str] = []
        while key in self._was and key in self._claims:
            following = self._claims[key][0][0]
            if following in next_titles:
                break  # an exchange, which is an error
            next_titles.append(following)
            key = self._key(database, following)
        return Rename(title, tuple(was), passed_on, tuple(next_titles))

    def _oldest(self, database: str, title: str) -> tuple[str, ...]:
        """Return the former titles of a title, and theirs, that have no former title themselves."""
        followed = self._followed_back(database, title)
        return tuple(
            [former for former in followed if self._key(database, former) not in self._was]
        )

    def _followed_back(self, database: str, title: str) -> Iterator[str]:
        """Yield the former titles of a title, their former titles, and so on, each once."""
        ahead = [title]
        found: set[str] = set()
        while ahead:
            later = self._key(database, ahead.pop())
            for was in self._was.get(later, ()):
                if was not in found and self._key(database, was) != later:
                    found.add(was)
                    ahead.append(was)
                    yield was

    def error(self, database: str, title: str) -> PlanningError | None:
        """Return the error for titles that are exchanged, or for a former title of two titles."""
        own_key = self._key(database, title)
        for was in self._was.get(own_key, ()):
            former = self._key(database, was)
            if former == own_key:
                continue
            claims = self._claims[former]
            source = claims[-1][1]
            if any(
                self._key(database, name) == own_key
                for name in self._followed_back(database, title)
            ):
                return refuse(
                    f"{title!r} and {was!r} are swapped, and the interface renames one clip at a time by its title",
                    source,
                    "rename in two runs: give one of the clips a third title first, then both their new titles",
                )
            if len({self._key(database, new) for new, _ in claims}) > 1:
                places = " and ".join([str(source.place) for _, source in claims])
                return refuse(
                    f"the former title {was!r} is declared for more than one title ({places})",
                    source,
                    "declare each former title for one title only",
                )
        return None
