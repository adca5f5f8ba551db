"""Which targets of the playbooks a run plans: those that ``--target`` names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from msauto.errors import MsautoError, close_names
from msauto.model.identity import matches, plain


class TargetChoice(Struct):
    """Globs of titles. No glob means every target: then nothing is asked of it.

    A target is chosen by its title, a former title of it, its key id, or the name of the channel or database.
    ``matched`` are the globs that matched something, on any server, and ``known`` all names that there were.
    """

    globs: Sequence[str] = ()
    matched: set[str] = set()
    known: dict[str, None] = {}

    def among(self, known: Iterable[str]) -> Callable[[Iterable[str]], bool]:
        """Return whether a target with some names is planned, as a function of them.

        ``known`` are the names of all targets of a server: a glob that is one of them chooses that name alone, so that
        the title ``News [a]`` does not choose ``News a``.
        """
        titles = dict.fromkeys(known)
        self.known |= titles
        form_of = {glob: plain(glob) for glob in self.globs}
        exact = {plain(title) for title in titles}.intersection(form_of.values())

        def is_chosen(names: Iterable[str]) -> bool:
            forms = {plain(name) for name in names}
            is_matched = False
            for glob, form in form_of.items():
                if form in exact:
                    is_match = form in forms
                else:
                    is_match = matches(form, forms)
                if is_match:
                    self.matched.add(glob)
                    is_matched = True
            return is_matched

        return is_chosen

    def merge(self, other: TargetChoice) -> None:
        """Add what the same globs matched elsewhere."""
        self.matched |= other.matched
        self.known |= other.known

    @property
    def warnings(self) -> tuple[str, ...]:
        """A warning that the plan is not complete, if it is narrowed."""
        if not self.globs:
            return ()
        globs = ", ".join(map(repr, self.globs))
        return (f"--target narrows this plan to {globs}; plan without it to see the rest",)

    def require_matches(self) -> None:
        """Raise :class:`MsautoError` if a glob matched nothing."""
        for glob in self.globs:
            if glob not in self.matched:
                near = close_names(plain(glob), list(self.known), 1, 0.5)
                remedy = (
                    f"did you mean {near[0]!r}?"
                    if near
                    else "name a title, a channel or a glob such as 'EP*'"
                )
                raise MsautoError(
                    f"--target {glob!r} matches no target of the playbooks", remedy=remedy
                )
