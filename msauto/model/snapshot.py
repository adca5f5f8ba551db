"""One snapshot, one comparison: what a reading shows of a target, what its requests make of it, and what came of that.

A *snapshot* maps things to values: the field ``comment``, the marker ``7``, the link ``Playout/Tonight/Film``. Each
request has *effects*: a thing with its value before and after. The *prediction* is the snapshot that the plan was made
from, with the effects of the requests so far. :func:`compare` holds it against a reading. Guards, settling,
verification and undo are answers of that one function.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Protocol

from msgspec import UNSET, Meta, Struct, UnsetType, field, json, structs

from msauto.model.identity import plain

if TYPE_CHECKING:
    Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
else:  # msgspec resolves no recursive alias, and what it reads is JSON already
    Json = Any

_Aspect = Literal[
    "asset", "title", "field", "xmp", "segment", "segmentation", "marker", "link", "restore",
    "rss_item", "thumbnail", "proxy", "xmp_batch", "command",
]  # fmt: skip
AspectName = Annotated[_Aspect, Meta(description="which aspect of the target")]

Thing = tuple[str, str]
"""An aspect, and the key of one part of it: ``("marker", "7")``; the title has the key ``""``."""
Part = Mapping[str, Json]
"""What a reading shows of one aspect: values by key."""
Snapshot = Mapping[str, Part]
"""What a reading shows of a target, by aspect. An aspect that is missing was not read, or cannot be."""
TWINS: Final = "twins"
"""The only name in the value of live items that share a key: ``{"twins": [...]}``."""
UNREAD: Final = "unread"
"""The name under which an item has the number of it that cannot be read. It counts as twins, even if it is alone."""
NEW: Final = "new "
"""How the key of an item begins that the server has not numbered yet: ``new 1``."""
EVERY: Final = "*"
"""The key of what a request may write of an aspect, on any asset: it is not compared, and the ledger forgets it."""
ASSET: Final[Thing] = ("asset", "")
"""The clip itself: ``True`` where it exists."""
TITLE: Final[Thing] = ("title", "")


def name_of(thing: Thing) -> str:
    """Return the name of a thing where names of things are kept: ``marker 7``."""
    return " ".join(thing)


def thing_of(name: str) -> Thing:
    """Return the thing of a name; that of an aspect, which means all of it, has the key ``""``."""
    aspect, _, key = name.partition(" ")
    return aspect, key


def named_in(snapshot: Snapshot, name: str) -> Json | Part:
    """Return what a snapshot has under a name: of a thing or a fact, else all of an aspect."""
    aspect, names_thing, key = name.partition(" ")
    part = snapshot.get(aspect, {})
    return part.get(key) if names_thing else part


class Rules(Protocol):
    """What comparing takes from an aspect."""

    @property
    def missing(self) -> Json | UnsetType:
        """The value of a key that a part does not show."""

    @property
    def kept(self) -> frozenset[str]:
        """The attributes that no server shows, and that the ledger keeps."""

    def misses(self, named: Json, shown: Json) -> Sequence[str]:
        """Return the names of the attributes in which ``shown`` is not as ``named``; ``""`` stands for a plain value.

        An attribute that reading does not show is not missed.
        """

    def hidden(self, named: Json, shown: Json) -> Sequence[str]:
        """Return the names that ``named`` has and reading does not show."""

    def place(self, value: Any) -> Hashable:
        """Return where an item is: what must not move, and what a new one is found by that the server gives its key."""


class Effect(Struct, frozen=True, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """What a request does to one thing. ``None`` is absent; positions are frames of the file."""

    aspect: AspectName
    key: Annotated[str, Meta(description="which one; new 1: the server gives it its key")]
    before: Annotated[Json, Meta(description="its whole value before, or what is known of it (whole)")] = None
    after: Annotated[Json, Meta(description="its value after: of an item the named attributes, the others stay")] = None
    visible: Annotated[bool, Meta(description="false where reading has not shown it so far")] = True
    slow: Annotated[bool, Meta(description="it may take minutes until reading shows it")] = False
    secret: Annotated[bool, Meta(description="its value is hidden, so nothing can be compared with it")] = False
    whole: Annotated[bool, Meta(description="false where before is not all that reading shows of it")] = True

    @property
    def thing(self) -> Thing:
        """The thing."""
        return self.aspect, self.key


# Digests ------------------------------------------------------------------------------------------------------------

_ENCODER: Final = json.Encoder(order="sorted", enc_hook=str)
_WIDTH: Final = 12
_PLACE: Final = 4
_HIDDEN: Final = "*" * _WIDTH


def digest(value: Any, place: Hashable = None) -> str:
    """Return twelve characters: four for the place of an item, eight for all of it."""
    at = b"" if place is None else _hashed(place, 3)
    return f"{at.decode():-<{_PLACE}}{_hashed(value, 6).decode()}"


def part_digest(part: Part) -> str:
    """Return twelve characters: how many values there are in four, so that a loss shows, and eight for all of them."""
    there = sum(value not in ("", [], None) for value in part.values())
    return f"{min(there, 9999):0{_PLACE}d}{digest(part)[_PLACE:]}"


def canonical(value: Any) -> bytes:
    """Return a value as bytes, which are the same for equal values: texts are compared after Unicode NFC."""
    text = _ENCODER.encode(value)
    return text if text.isascii() else plain(text.decode()).encode()


def _hashed(value: Any, size: int) -> bytes:
    return b2a_base64(blake2b(canonical(value), digest_size=size).digest(), newline=False)


@lru_cache(1000)
def _shared(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the first of equal tuples: most targets have the same few names."""
    return names


class Seen(Struct, frozen=True, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """Digests of what planning saw and the target does not change, in place of the values.

    A name is that of a fact that a template used (``fact frames``), of one thing (``marker 7``), or of an aspect that
    the target does not touch (``segment``).
    """

    names: Annotated[tuple[str, ...], Meta(description="the facts and things")] = ()
    digests: Annotated[str, Meta(description="a digest of twelve characters for each name")] = ""
    private: Annotated[tuple[str, ...], Meta(description="names whose value holds a secret: no digest is kept")] = ()

    @classmethod
    def of(cls, digests: Mapping[str, str], private: Iterable[str] = ()) -> Seen:
        """Return the digests of names."""
        return cls(_shared(tuple(digests)), "".join(digests.values()), tuple(private))

    def items(self) -> Iterator[tuple[str, str]]:
        """Yield each name with its digest; those that are hidden are left out."""
        for index, name in enumerate(self.names):
            known = self.digests[index * _WIDTH : (index + 1) * _WIDTH]
            if known != _HIDDEN:
                yield name, known

    @property
    def things(self) -> list[Thing]:
        """The names that are those of things; a fact has the aspect ``fact``."""
        return [thing_of(name) for name in self.names if " " in name]

    def without_private(self) -> Seen:
        """Return the digests as they may be shown: one of a short secret would reveal it."""
        if not self.private:
            return self
        known = dict(self.items())
        return Seen(self.names, "".join(_HIDDEN if n in self.private else known.get(n, _HIDDEN) for n in self.names))


# The prediction -----------------------------------------------------------------------------------------------------


class Expected(Struct, frozen=True):
    """What one thing must be. ``done``: its effects are sent, and it is to be as ``after``; else still as ``before``.

    ``stays`` are the attributes that no effect names, and that must not be lost. ``whole`` false: ``before`` is what is
    known, or what an earlier request was to make, and names attributes alone.
    """

    before: Json
    after: Json
    stays: Json
    done: bool
    visible: bool = True
    secret: bool = False
    whole: bool = True


def predict(effects: Sequence[Iterable[Effect]], done: int) -> dict[Thing, Expected]:
    """Return what each thing must be once the first ``done`` requests are; ``effects`` are those of each request."""
    expected: dict[Thing, Expected] = {}
    for index, each in enumerate(effects):
        is_done = index < done
        for effect in each:
            if effect.key == EVERY:
                continue
            thing = effect.aspect, effect.key
            had = expected.get(thing)
            if had is None:
                stays = effect.before if effect.after is not None else None
                expected[thing] = Expected(
                    effect.before, effect.after, stays, is_done, effect.visible, effect.secret, effect.whole
                )
            elif is_done:
                after = overlay(had.after, effect.after)
                stays = had.stays if effect.after is not None and had.after is not None else None
                secret = had.secret or effect.secret
                expected[thing] = Expected(had.before, after, stays, True, had.visible, secret, had.whole)
    return expected


def predict_one(effects: Sequence[Iterable[Effect]], index: int) -> dict[Thing, Expected]:
    """Return what each thing must be once a request is done, as :func:`predict`; before is as it was just before it."""
    prior, expected = predict(effects, index), predict(effects, index + 1)
    for thing in {effect.thing for effect in effects[index]}:
        had = prior[thing]
        if had.done:
            expected[thing] = structs.replace(expected[thing], before=had.after, whole=False)
    return expected


def overlay(value: Json, named: Json) -> Json:
    """Return a value with the named attributes; anything but two mappings is replaced."""
    return {**value, **named} if isinstance(value, dict) and isinstance(named, dict) else named


def after(snapshot: Snapshot, effects: Iterable[Effect]) -> Snapshot:
    """Return the snapshot that effects lead to; what is new has its provisional key."""
    changed = {aspect: dict(part) for aspect, part in snapshot.items()}
    for effect in effects:
        aspect, key = effect.thing
        part = changed.setdefault(aspect, {})
        if effect.after is None:
            part.pop(key, None)
        else:
            part[key] = overlay(part.get(key), effect.after)
    return changed


# The comparison -----------------------------------------------------------------------------------------------------

Verdict = Literal["predicted", "before", "else", "hidden"]
"""How a thing is found: as predicted, as before, as something else; or reading does not show it."""


class Comparison(Struct):
    """What a reading shows, held against a prediction.

    ``verdicts`` are those of the things that requests name, ``values`` what was read of them. ``keys`` are the live
    keys of what is new, ``twice`` those of more like it than there are to be. ``unseen`` are things of which reading
    does not show all. Of what no request names: ``lost``, ``moved`` within a list that requests write to, ``changed``
    and ``new``; the key ``""`` stands for something of the aspect. ``looked`` are the names of what planning looked at,
    and that is not as it was.
    """

    verdicts: dict[Thing, Verdict] = field(default_factory=dict)
    values: dict[Thing, Json] = field(default_factory=dict)
    keys: dict[Thing, str] = field(default_factory=dict)
    twice: dict[Thing, list[str]] = field(default_factory=dict)
    unseen: list[Thing] = field(default_factory=list)
    lost: list[Thing] = field(default_factory=list)
    moved: list[Thing] = field(default_factory=list)
    changed: list[Thing] = field(default_factory=list)
    new: list[Thing] = field(default_factory=list)
    looked: list[str] = field(default_factory=list)


def compare(
    expected: Mapping[Thing, Expected],
    seen: Iterable[tuple[str, str]],
    read: Snapshot,
    rules: Mapping[str, Rules],
    looked: Iterable[tuple[str, str]] = (),
) -> Comparison:
    """Compare a prediction, what planning saw of the rest, and what it looked at, with a reading."""
    comparison = Comparison(looked=[name for name, known in looked if digest(named_in(read, name)) != known])
    rest: dict[str, dict[str, str]] = {aspect: {} for aspect, _ in expected}
    for name, known in seen:
        aspect, names_thing, key = name.partition(" ")
        if (aspect, key) in expected:
            continue  # the tasks hold it
        if names_thing:
            rest.setdefault(aspect, {})[key] = known
        elif aspect in read and (shown := part_digest(read[aspect])) != known:
            (comparison.lost if shown[:_PLACE] < known[:_PLACE] else comparison.changed).append((aspect, ""))
    is_gone = read.get(ASSET[0]) == {}
    for aspect, known_keys in rest.items():
        things = {key: each for (name, key), each in expected.items() if name == aspect}
        if aspect in read:
            _compare_named(comparison, aspect, things, known_keys, read[aspect], rules[aspect])
            _compare_rest(comparison, aspect, things, known_keys, read[aspect], rules[aspect])
            continue
        for key, each in things.items():
            comparison.verdicts[aspect, key] = "else" if is_gone and each.visible else "hidden"
            comparison.unseen += [] if is_gone and each.visible else [(aspect, key)]
    return comparison


def _compare_named(
    comparison: Comparison, aspect: str, things: Mapping[str, Expected], rest: Collection[str], part: Part, rule: Rules
) -> None:
    """Compare the things of one aspect that requests name. What is new is found by its place, under a new key."""
    base = {*rest, *(key for key, each in things.items() if not (each.done and each.after is None))}
    new = {key: each for key, each in things.items() if key.startswith(NEW) and rule.place(each.after) is not None}
    at_place: dict[Hashable, list[str]] = {}
    for key, value in part.items() if new else ():
        if key not in base:
            at_place.setdefault(rule.place(value), []).append(key)
    made: dict[Hashable, list[Json]] = {}
    for each in (each for each in new.values() if each.done):
        made.setdefault(rule.place(each.after), []).append(each.after)
    given: set[str] = set()
    for key, each in new.items():
        place = rule.place(each.after)
        there = at_place.get(place, [])
        alike = [other for other in made.get(place, ()) if other == each.after]
        fitting = [live for live in there if not rule.misses(each.after, part[live])]
        free = [live for live in fitting if live not in given]
        if each.done and len(fitting) == len(alike) and free:
            comparison.verdicts[aspect, key], comparison.keys[aspect, key] = "predicted", free[0]
            given.add(free[0])
        else:
            comparison.verdicts[aspect, key] = "else" if there else "before"
        if len(fitting) > len(alike):
            comparison.twice[aspect, key] = fitting
        live = comparison.keys.get((aspect, key)) or next(iter(fitting or there), None)
        comparison.values[aspect, key] = None if live is None else part[live]
    for key, each in things.items():
        if key not in new:
            now = part.get(key, rule.missing)
            if each.done and each.after is None and key in given:
                now = None  # the server gave its key to what is new
            comparison.verdicts[aspect, key] = _verdict(each, now, rule)
            comparison.values[aspect, key] = None if now is UNSET else now
        verdict = comparison.verdicts[aspect, key]
        hidden = rule.hidden(each.after, comparison.values[aspect, key]) if each.after is not None else ()
        if isinstance(each.after, dict):
            hidden = [name for name in hidden if each.after[name] is not None]
        if verdict == "hidden" or (verdict == "predicted" and not rule.kept.issuperset(hidden)):
            comparison.unseen.append((aspect, key))


def _verdict(each: Expected, now: Any, rule: Rules) -> Verdict:
    if each.secret or (now is UNSET and not each.visible):
        return "hidden"
    now = "" if now is UNSET else now  # it was shown before
    if each.done and _is_predicted(each, now, rule):
        # A plain value of which reading shows nothing is not seen; of an item, reading shows the rest.
        return "hidden" if not isinstance(now, dict) and rule.hidden(each.after, now) else "predicted"
    if each.before is None and rule.missing is not None:
        return "else" if each.done else "before"  # what a value was is not known
    if not each.whole and isinstance(each.before, dict):  # where nothing is known of it, it may be gone, too
        return "else" if each.before and rule.misses(each.before, now) else "before"
    return "before" if is_equal(each.before, now, rule) else "else"


def _is_predicted(each: Expected, now: Json, rule: Rules) -> bool:
    if each.after is None or now is None:
        return each.after is None and now is None
    return not rule.misses(each.after, now) and not lost_attributes(each, now, rule)


def lost_attributes(each: Expected, now: Json, rule: Rules) -> dict[str, Json]:
    """Return what an item had, no effect names, and is empty now."""
    if not isinstance(each.stays, dict) or not isinstance(each.after, dict):
        return {}
    left = {name: value for name, value in each.stays.items() if name not in each.after}
    return {n: v for n, v in left.items() if rule.misses({n: ""}, each.stays) and not rule.misses({n: ""}, now)}


def is_equal(one: Json, other: Json, rule: Rules) -> bool:
    """Return whether a reading, the other value, is equal in every attribute, and shows no more than the one."""
    if one is None or other is None:
        return one is other
    return not (rule.misses(one, other) or rule.misses(other, one) or rule.hidden(other, one))


def _compare_rest(
    comparison: Comparison, aspect: str, things: Collection[str], rest: Mapping[str, str], part: Part, rule: Rules
) -> None:
    """Compare what no request names of an aspect that requests write to."""
    for key, known in rest.items():
        now = part.get(key, rule.missing)
        if now is UNSET or now in (None, "", []):
            comparison.lost.append((aspect, key))
        elif (shown := digest(now, rule.place(now))) != known:
            (comparison.changed if shown[:_PLACE] == known[:_PLACE] else comparison.moved).append((aspect, key))
    given = {key for (name, _), key in comparison.keys.items() if name == aspect}
    comparison.new += [
        (aspect, key)
        for key, value in part.items()
        if key not in rest and key not in things and key not in given and value not in ("", [])
    ]
