"""One snapshot, one comparison: what a reading shows of a target, what its requests make of it, and what came of that.

A *snapshot* maps things to values: the field ``comment``, the marker ``7``, the link ``Playout/Tonight/Film``. Each
request has *effects*: a thing with its value before and after. The *prediction* is the snapshot that the plan was made
from, with the effects of the requests so far. :func:`compare` holds it against a reading. Guards, settling,
verification and undo are answers of that one function.
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Protocol

from msgspec import UNSET, Meta, Struct, UnsetType, json, structs

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
    """What a request does to one thing. ``None`` is absent; positions are frames of the file.

    Attributes:
        key: which one; new 1: the server gives it its key
        before: its whole value before, or what is known of it (whole)
        after: its value after: of an item the named attributes, the others stay
        visible: false where reading has not shown it so far
        slow: it may take minutes until reading shows it
        secret: its value is hidden, so nothing can be compared with it
        whole: false where before is not all that reading shows of it
    """

    aspect: AspectName
    key: str
    before: Json = None
    after: Json = None
    visible: bool = True
    slow: bool = False
    secret: bool = False
    whole: bool = True

    @property
    def thing(self) -> Thing:
        """What it is done to."""
        return self.aspect, self.key


# Digests ------------------------------------------------------------------------------------------------------------

_ENCODER: Final = json.Encoder(order="sorted", enc_hook=str)
_WIDTH: Final = 12
_PLACE: Final = 4
_NO_PLACE: Final = "-" * _PLACE
_TWINS: Final = "-"
"""Before the number of twins: no place has it in its digest."""
_MOST_TWINS: Final = 999
_HIDDEN: Final = "*" * _WIDTH


def digest(value: Any, place: Hashable = None) -> str:
    """Return twelve characters: four for the place of an item, or the number of twins, and eight for all of it."""
    whole = b2a_base64(blake2b(canonical(value), digest_size=6).digest(), newline=False).decode()
    if isinstance(value, dict) and isinstance(twins := value.get(TWINS), list):
        number = min(len(twins), _MOST_TWINS)
        return f"{_TWINS}{number:03}{whole}"
    if place is None:
        return _NO_PLACE + whole
    at = b2a_base64(blake2b(canonical(place), digest_size=3).digest(), newline=False).decode()
    return at + whole


def part_digest(part: Part) -> str:
    """Return twelve characters: how many values there are in four, so that a loss shows, and eight for all of them."""
    count = 0
    for value in part.values():
        if isinstance(value, dict) and isinstance(twins := value.get(TWINS), list):
            count += len(twins)
        elif value not in ("", [], None):
            count += 1
    whole = blake2b(canonical(part), digest_size=6).digest()
    counted = count.to_bytes(3)  # no answer has more
    return b2a_base64(counted + whole, newline=False).decode()


def _number_in(digest_of_thing: str) -> int:
    """Return how many items were digested."""
    number = digest_of_thing[1:_PLACE]
    is_of_twins = digest_of_thing.startswith(_TWINS) and number.isdecimal()
    return int(number) if is_of_twins else 1


def _count_of(digest_of_part: str) -> int:
    """Return how many values the digest of an aspect counts."""
    return int.from_bytes(a2b_base64(digest_of_part[:_PLACE]))


def canonical(value: Any) -> bytes:
    """Return a value as bytes, which are the same for equal values: texts are compared after Unicode NFC."""
    text = _ENCODER.encode(value)
    return text if text.isascii() else plain(text.decode()).encode()


@lru_cache(1000)
def _shared(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the first of equal tuples: most targets have the same few names."""
    return names


class Seen(Struct, frozen=True, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """Digests of what planning saw and the target does not change, in place of the values.

    A name is that of a fact that a template used (``fact frames``), of one thing (``marker 7``), or of an aspect that
    the target does not touch (``segment``).

    Attributes:
        names: the facts and things
        digests: a digest of twelve characters for each name
        private: names whose value holds a secret: no digest is kept
    """

    names: tuple[str, ...] = ()
    digests: str = ""
    private: tuple[str, ...] = ()

    @classmethod
    def of(cls, digests: Mapping[str, str], private: Iterable[str] = ()) -> Seen:
        """Return the digests of names."""
        return cls(_shared(tuple(digests)), "".join(digests.values()), tuple(private))

    def items(self) -> list[tuple[str, str]]:
        """Return each name with its digest; those that are hidden are left out."""
        known: list[tuple[str, str]] = []
        for index, name in enumerate(self.names):
            kept_digest = self.digests[index * _WIDTH : (index + 1) * _WIDTH]
            if kept_digest != _HIDDEN:
                known.append((name, kept_digest))
        return known

    @property
    def things(self) -> list[Thing]:
        """The names that are those of things; a fact has the aspect ``fact``."""
        return [thing_of(name) for name in self.names if " " in name]

    def without_private(self) -> Seen:
        """Return the digests as they may be shown: one of a short secret would reveal it."""
        if not self.private:
            return self
        digests = dict(self.items()) | dict.fromkeys(self.private, _HIDDEN)
        return Seen(self.names, "".join([digests.get(name, _HIDDEN) for name in self.names]))


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
    for index, effects_of_request in enumerate(effects):
        is_done = index < done
        for effect in effects_of_request:
            if effect.key == EVERY:
                continue
            thing = effect.aspect, effect.key
            earlier = expected.get(thing)
            if earlier is None:
                stays = effect.before if effect.after is not None else None
                expected[thing] = Expected(
                    effect.before,
                    effect.after,
                    stays,
                    is_done,
                    effect.visible,
                    effect.secret,
                    effect.whole,
                )
            elif is_done:
                expected[thing] = _expect_next(earlier, effect)
    return expected


def _expect_next(earlier: Expected, effect: Effect) -> Expected:
    """Return what is expected of a thing once another effect on it is done."""
    stays = earlier.stays
    if effect.after is None or earlier.after is None:
        stays = None
    after = overlay(earlier.after, effect.after)
    secret = earlier.secret or effect.secret
    return structs.replace(earlier, after=after, stays=stays, done=True, secret=secret)


def predict_one(effects: Sequence[Iterable[Effect]], index: int) -> dict[Thing, Expected]:
    """Return what each thing must be once a request is done, as :func:`predict`; before is as it was just before it."""
    prior = predict(effects, index)
    expected = predict(effects, index + 1)
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
    and ``new``; the key ``""`` stands for something of the aspect. ``changed_dependencies`` name
    what planning looked at, and that is not as it was.
    """

    verdicts: dict[Thing, Verdict] = {}
    values: dict[Thing, Json] = {}
    keys: dict[Thing, str] = {}
    twice: dict[Thing, list[str]] = {}
    unseen: list[Thing] = []
    lost: list[Thing] = []
    moved: list[Thing] = []
    changed: list[Thing] = []
    new: list[Thing] = []
    changed_dependencies: list[str] = []


def compare(
    expected: Mapping[Thing, Expected],
    seen: Iterable[tuple[str, str]],
    read: Snapshot,
    rules: Mapping[str, Rules],
    depends_on: Iterable[tuple[str, str]] = (),
) -> Comparison:
    """Compare a prediction, what planning saw of the rest, and what it looked at, with a reading."""
    comparison = Comparison()
    for name, kept_digest in depends_on:
        if digest(named_in(read, name)) != kept_digest:
            comparison.changed_dependencies.append(name)
    named: dict[str, dict[str, Expected]] = {}
    others: dict[str, dict[str, str]] = {}
    seen_whole: set[str] = set()
    for (aspect, key), expectation in expected.items():
        named.setdefault(aspect, {})[key] = expectation
        others.setdefault(aspect, {})
    for name, kept_digest in seen:
        aspect, names_thing, key = name.partition(" ")
        if (aspect, key) in expected:
            continue  # the tasks hold it
        if names_thing:
            others.setdefault(aspect, {})[key] = kept_digest
        elif aspect in read:
            seen_whole.add(aspect)
            _compare_part(comparison, aspect, read[aspect], kept_digest)
    is_gone = read.get(ASSET[0]) == {}
    for aspect, digests_of_others in others.items():
        things = named.get(aspect, {})
        if aspect not in read:
            _compare_unread(comparison, aspect, things, is_gone=is_gone)
            continue
        part = read[aspect]
        rule = rules[aspect]
        keys_of_new = _compare_named(comparison, aspect, things, digests_of_others, part, rule)
        named_keys = {*things, *keys_of_new}
        if aspect not in seen_whole:
            _compare_others(comparison, aspect, named_keys, digests_of_others, part, rule)
    return comparison


def _compare_part(comparison: Comparison, aspect: str, part: Part, kept_digest: str) -> None:
    """Compare an aspect that no request writes to by its digest."""
    live_digest = part_digest(part)
    if live_digest == kept_digest:
        return
    if _count_of(live_digest) < _count_of(kept_digest):
        comparison.lost.append((aspect, ""))
    else:
        comparison.changed.append((aspect, ""))


def _compare_unread(
    comparison: Comparison, aspect: str, things: Mapping[str, Expected], *, is_gone: bool
) -> None:
    """Compare the things of an aspect that was not read; ``is_gone``: there is no asset to read."""
    for key, expectation in things.items():
        thing = aspect, key
        if is_gone and expectation.visible:
            comparison.verdicts[thing] = "else"
        else:
            comparison.verdicts[thing] = "hidden"
            comparison.unseen.append(thing)


def _compare_named(
    comparison: Comparison,
    aspect: str,
    things: Mapping[str, Expected],
    keys_of_others: Collection[str],
    part: Part,
    rule: Rules,
) -> Collection[str]:
    """Compare the things of one aspect that requests name; return the live keys of those that are new."""
    new: dict[str, Expected] = {}
    known_keys = set(keys_of_others)
    for key, expectation in things.items():
        if key.startswith(NEW) and rule.place(expectation.after) is not None:
            new[key] = expectation
        if not expectation.done or expectation.after is not None:
            known_keys.add(key)
    keys_of_new: Collection[str] = ()
    if new:
        keys_of_new = _compare_new(comparison, aspect, new, known_keys, part, rule)
    for key, expectation in things.items():
        thing = aspect, key
        if key not in new:
            live = part.get(key, rule.missing)
            if key in keys_of_new:
                live = None  # it is deleted, and the server gave its key to what is new
            comparison.verdicts[thing] = _verdict(expectation, live, rule)
            comparison.values[thing] = None if live is UNSET else live
        if _is_unseen(
            comparison.verdicts[thing], expectation.after, comparison.values[thing], rule
        ):
            comparison.unseen.append(thing)
    return keys_of_new


def _compare_new(
    comparison: Comparison,
    aspect: str,
    new: Mapping[str, Expected],
    known_keys: Collection[str],
    part: Part,
    rule: Rules,
) -> Collection[str]:
    """Find what is new by its place, under a key that was not known; return the keys that are found."""
    live_keys_at: dict[Hashable, list[str]] = {}
    for key, value in part.items():
        if key not in known_keys:
            live_keys_at.setdefault(rule.place(value), []).append(key)
    made_at: dict[Hashable, list[Json]] = {}
    for expectation in new.values():
        if expectation.done:
            made_at.setdefault(rule.place(expectation.after), []).append(expectation.after)
    found_keys: set[str] = set()
    for key, expectation in new.items():
        thing = (aspect, key)
        desired = expectation.after
        place = rule.place(desired)
        live_keys = live_keys_at.get(place, [])
        as_desired = [item for item in live_keys if not rule.misses(desired, part[item])]
        free_keys = [item for item in as_desired if item not in found_keys]
        made_count = made_at.get(place, []).count(desired)
        likeliest = as_desired or live_keys
        if expectation.done and len(as_desired) == made_count and free_keys:
            likeliest = free_keys
            found_keys.add(likeliest[0])
            comparison.keys[thing] = likeliest[0]
            comparison.verdicts[thing] = "predicted"
        else:
            comparison.verdicts[thing] = "else" if live_keys else "before"
        if len(as_desired) > made_count:
            comparison.twice[thing] = as_desired
        comparison.values[thing] = part[likeliest[0]] if likeliest else None
    return found_keys


def _is_unseen(verdict: Verdict, desired: Json, live: Json, rule: Rules) -> bool:
    """Return whether reading does not show all of a thing that no server keeps to itself."""
    if verdict != "predicted" or desired is None:
        return verdict == "hidden"
    hidden = rule.hidden(desired, live)
    if isinstance(desired, dict):
        hidden = [name for name in hidden if desired[name] is not None]
    return not rule.kept.issuperset(hidden)


def _verdict(expectation: Expected, live: Any, rule: Rules) -> Verdict:
    before = expectation.before
    after = expectation.after
    if expectation.secret or (live is UNSET and not expectation.visible):
        return "hidden"
    if live is UNSET:
        live = ""  # it was shown before
    if expectation.done and _is_predicted(expectation, live, rule):
        # A plain value of which reading shows nothing is not seen; of an item, reading shows the rest.
        is_hidden = not isinstance(live, dict) and rule.hidden(after, live)
        return "hidden" if is_hidden else "predicted"
    if before is None and rule.missing is not None:
        return "else" if expectation.done else "before"  # what a value was is not known
    if expectation.whole or not isinstance(before, dict):
        return "before" if is_equal(before, live, rule) else "else"
    # Where nothing is known of what it was, it may be gone, too.
    return "else" if before and rule.misses(before, live) else "before"


def _is_predicted(expectation: Expected, live: Json, rule: Rules) -> bool:
    after = expectation.after
    if after is None or live is None:
        return after is live
    return not rule.misses(after, live) and not lost_attributes(expectation, live, rule)


def lost_attributes(expectation: Expected, live: Json, rule: Rules) -> dict[str, Json]:
    """Return what an item had, no effect names, and is empty now."""
    stays = expectation.stays
    after = expectation.after
    lost: dict[str, Json] = {}
    if not isinstance(stays, dict) or not isinstance(after, dict):
        return lost
    live_item = live if isinstance(live, dict) else {}
    for name, value in stays.items():
        if name in after or live_item.get(name) == value:
            continue
        empty: Json = {name: ""}
        if rule.misses(empty, stays) and not rule.misses(empty, live):
            lost[name] = value
    return lost


def is_equal(one: Json, other: Json, rule: Rules) -> bool:
    """Return whether a reading, the other value, is equal in every attribute, and shows no more than the one."""
    if one is None or other is None:
        return one is other
    return not (rule.misses(one, other) or rule.misses(other, one) or rule.hidden(other, one))


def _compare_others(
    comparison: Comparison,
    aspect: str,
    named_keys: Collection[str],
    kept_digests: Mapping[str, str],
    part: Part,
    rule: Rules,
) -> None:
    """Compare what no request names of an aspect that requests write to."""
    for key, kept_digest in kept_digests.items():
        live = part.get(key, rule.missing)
        if live is UNSET or live in (None, "", []):
            comparison.lost.append((aspect, key))
            continue
        live_digest = digest(live, rule.place(live))
        if live_digest == kept_digest:
            continue
        number, kept_number = _number_in(live_digest), _number_in(kept_digest)
        if number < kept_number:
            comparison.lost.append((aspect, key))
        elif number == kept_number and live_digest[:_PLACE] != kept_digest[:_PLACE]:
            comparison.moved.append((aspect, key))
        else:
            comparison.changed.append((aspect, key))
    for key, value in part.items():
        is_known = key in kept_digests or key in named_keys
        if not is_known and value not in ("", []):
            comparison.new.append((aspect, key))
