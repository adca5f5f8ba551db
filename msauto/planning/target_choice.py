"""Which targets of the playbooks a run plans: those that ``--target`` names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from msauto.errors import MsautoError, close_names
from msauto.model.identity import matches, plain


class TargetChoice:
    """Globs of titles; it remembers which of them matched something, on any server. No glob means every target.

    A target is chosen by its title, a former title of it, its key id, or the name of the channel or database.
    """

    def __init__(self, globs: Collection[str] = ()) -> None:
        self._globs = {glob: plain(glob) for glob in globs}
        self._matched: set[str] = set()
        self._known: dict[str, None] = {}

    def among(self, known: Iterable[str]) -> Callable[[Iterable[str]], bool] | None:
        """Return whether a target with some names is planned, as a function of them; ``None``: every one is.

        ``known`` are the names of all targets of a server: a glob that is one of them chooses that name alone, so that
        the title ``News [a]`` does not choose ``News a``.
        """
        if not self._globs:
            return None
        titles = dict.fromkeys(known)
        self._known |= titles
        exact = {plain(title) for title in titles}.intersection(self._globs.values())

        def is_chosen(names: Iterable[str]) -> bool:
            forms = {plain(name) for name in names}
            is_matched = False
            for glob, form in self._globs.items():
                if form in exact:
                    is_match = form in forms
                else:
                    is_match = matches(form, forms)
                if is_match:
                    self._matched.add(glob)
                    is_matched = True
            return is_matched

        return is_chosen

    def merge(self, other: TargetChoice) -> None:
        """Add what the same globs matched elsewhere."""
        self._matched |= other._matched
        self._known |= other._known

    @property
    def warnings(self) -> tuple[str, ...]:
        """A warning that the plan is not complete, if it is narrowed."""
        if not self._globs:
            return ()
        globs = ", ".join(map(repr, self._globs))
        return (f"--target narrows this plan to {globs}; plan without it to see the rest",)

    def require_matches(self) -> None:
        """Raise :class:`MsautoError` if a glob matched nothing."""
        for glob, form in self._globs.items():
            if glob not in self._matched:
                near = close_names(form, list(self._known), 1, 0.5)
                remedy = (
                    f"did you mean {near[0]!r}?"
                    if near
                    else "name a title, a channel or a glob such as 'EP*'"
                )
                raise MsautoError(
                    f"--target {glob!r} matches no target of the playbooks", remedy=remedy
                )
