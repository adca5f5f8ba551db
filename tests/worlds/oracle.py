"""What must not be when a playbook is applied, whatever the planner does: one rule.

*Nothing that no playbook named is lost or changed, what others made or changed is as they left it, and what is called
verified is as predicted.* The oracle sees the tasks, who changed what at which request, and what was read before. It
does not prescribe requests. It reports:

- (a) a thing that no task names was lost or changed, or made
- (b) a thing was lost without consent, or overwritten although it was read that another user had changed it
- (c) a target is called changed or unchanged, and is not as asked, or has lost what no task names
- (d) the outcomes and the requests do not fit each other: sent twice, sent without reading, sent although refused
- (e) the next run overwrote what others had changed since a run wrote it, and did not name it, or was to keep it.
  What ran once runs again, or what was accepted is made again. All that counts whatever title the clip has by then

A change by another user between the last read of a thing and a write to it cannot be noticed by any client.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from tests.worlds.contract import (
    Channel,
    Wish,
    asset_of,
    declares,
    is_certain,
    missing,
    named,
    no_consent,
    wish_of,
)
from tests.worlds.picture import (
    CHANNEL,
    Effect,
    Mark,
    News,
    Part,
    Picture,
    Thing,
    clips,
    effects,
    entries,
    is_another,
    of,
)
from tests.worlds.scenario import Scenario
from tests.worlds.watch import Event, Watch
from tests.worlds.world import Task

_SURE = ("changed", "unchanged")


@dataclass(frozen=True)
class Judge:
    """One run to be judged: ``said`` is its JSON, nothing if it was refused; ``ok`` is its own verdict.

    ``before``: how the run before left what it wrote.
    """

    scenario: Scenario
    watch: Watch
    said: dict[str, Any]
    before: Picture
    ok: bool

    def faults(self) -> Iterator[str]:
        """Yield all that is wrong."""
        yield from self._codes()
        for sent, done, event in self.watch.ours():
            deleted = {
                each.thing.clip
                for each in event.effects
                if each.thing.what == "asset" and each.after is None
            }
            for effect in event.effects:
                if effect.thing.clip in deleted and effect.thing.what not in ("asset", "link"):
                    continue  # it goes with its clip
                if reason := self._reason(sent, done, event, effect):
                    thing = effect.thing
                    told = f"{thing.what} {thing.which!r} of {thing.clip}: {effect.before!r} → {effect.after!r}"
                    yield f"{reason}: {told} by {event.line}"
        yield from self._sent_again()
        if not self.said or self.said["summary"]["errors"]:
            return  # what is in error is left out
        for target in self._targets:
            clip = self._clip(target)
            if all(self._outcome(each) in _SURE for each in self._of(clip)):
                told, end = (
                    f"(c) {target['name']} is called",
                    self.watch.finished.get(target["name"]),
                )
                yield from (
                    f"{told} {self._outcome(target)}: {each}" for each in self._missing(clip, end)
                )
        for clip in {thing.clip for world in self._worlds for thing in world}:
            if self.ok and not self._of(clip):  # what is unchanged is not among the targets
                yield from (
                    f"(c) {clip} is called unchanged: {each}"
                    for each in self._missing(clip, self.watch.planned)
                )

    # What tasks name ----------------------------------------------------------------------------------------------

    @cached_property
    def _targets(self) -> list[dict[str, Any]]:
        return list(self.said.get("targets") or ())

    @staticmethod
    def _outcome(target: dict[str, Any]) -> str | None:
        return (target.get("result") or {}).get("outcome")

    @cached_property
    def _tasks(self) -> list[Task]:
        """The tasks that are not left out."""
        tags = set(self.scenario.tags)
        return [
            task for task in self.scenario.tasks if not tags or tags & set(task.get("tags", ()))
        ]

    @cached_property
    def _worlds(self) -> list[Picture]:
        """What the server held while it was planned."""
        planned = self.watch.events[: self.watch.planned]
        return [self.watch.before, *(event.after for event in planned if event.effects)]

    def _wish(self, clip: int, *, certain: bool = False) -> Wish | None:
        """Return what tasks ask of a clip: all that may name it, or those that do whatever others changed meanwhile."""
        tasks = []
        for task in (task for task in self._tasks if "rss" not in task):
            each = [named(task, world, self.scenario.server) for world in self._worlds]
            if not any(clip in some for some in each):
                continue
            moving = "was" in asset_of(task) and len(self._worlds) > 1
            everywhere = all(clip in some for some in each) and not moving
            if certain and not (
                everywhere and all(is_certain(task, world, clip) for world in self._worlds)
            ):
                return None
            tasks.append(task)
        return wish_of(tasks) if tasks else None

    @cached_property
    def _channel(self) -> Channel:
        rss = [task["rss"] for task in self._tasks if "rss" in task]
        return Channel(
            tuple(item for task in rss for item in task["items"]),
            any(task.get("exactly") for task in rss),
            self.scenario.server.rss_guid,
            self.scenario.ours.get("rss_guid") == "stem",
        )

    # One thing that a request changed -----------------------------------------------------------------------------

    def _reason(self, sent: int, done: int, event: Event, effect: Effect) -> str:
        """Why our request must not have done this, or nothing."""
        thing, read = effect.thing, self.watch.last_read(effect, sent)
        planned = min(read, self.watch.last_read(effect, self.watch.planned or 0))
        theirs = [
            (place, each)
            for place, each in self.watch.theirs()
            if place < done and _touches(each, thing.clip)
        ]
        unread = [each for place, each in theirs if place > read]
        named_anew = [
            each
            for place, each in self.watch.theirs()
            if self.watch.last_get(event, sent) < place < done
        ]
        if unread or (thing.clip != CHANNEL and any(_renames(each) for each in named_anew)):
            seen = self.watch.last_read(Effect(Thing(thing.clip, "asset", ""), None, None), sent)
            seen = max(seen, self.watch.last_list(sent)) if thing.what == "asset" else seen
            # What happens while an answer is under way is no time since it was read.
            paused = self.scenario.forks == 1 and any(
                place > seen + 1 and each.paused for place, each in theirs
            )
            return (
                "(d) sent two minutes after the last read"
                if paused and not event.hooked and not event.late
                else ""
            )
        if thing.what == "segment" and effect.before is not None and self._is_of_server(effect):
            return self._not_declared(effect, self.watch.at(planned))
        is_theirs = any(
            place > planned and any(other.thing == thing for other in each.effects)
            for place, each in theirs
        )
        if is_theirs and self.watch.at(read).get(thing) != self.watch.at(planned).get(thing):
            return "(b) it was read that another user has changed this"
        if thing.clip == CHANNEL:
            declared, wish = self._channel.declares(effect, self.watch.at(planned)), None
        else:
            wish = self._wish(thing.clip)
            if wish is None:
                return "(a) no task names this clip"
            declared = declares(wish, effect, self.watch.at(planned))
        if not declared and not self._is_moved_back(effect):
            return self._not_declared(effect, self.watch.at(planned))
        if self._protects(effect, self.watch.at(planned)):
            return "(a) a task that was left out names this"
        if wish is None:
            return ""
        known = (
            sent if thing.what == "asset" else self.watch.planned or 0
        )  # what is deleted is read again
        read, listed = self.watch.last_read(effect, known), self.watch.last_list(known)
        reason = no_consent(wish, effect, self.watch.at(read), self.watch.at(listed))
        return f"(b) {reason}" if reason else ""

    def _is_moved_back(self, effect: Effect) -> bool:
        """Whether the run before left it so: it is known by its key, also where others have moved it."""
        return effect.after is not None and self.before.get(effect.thing) == effect.after

    def _protects(self, effect: Effect, planned: Picture) -> bool:
        """Whether a task that was left out names what was lost."""
        left_out = [
            task for task in self.scenario.tasks if task not in self._tasks and "asset" in task
        ]
        tasks = [
            task
            for task in left_out
            if effect.thing.clip in named(task, planned, self.scenario.server)
        ]
        old, wish = planned.get(effect.thing), wish_of(tasks)
        if not tasks or old is None or effect.after is not None or wish.absent:
            return False
        match effect.thing.what:
            case "asset":
                return True
            case "marker":
                return any(item.get("state") != "absent" for item in wish.marker(old))
            case "segment":
                return any(item.get("state") != "absent" for item in wish.segment(old))
        return False

    def _not_declared(self, effect: Effect, planned: Picture) -> str:
        """A server may do more than it was asked: then the target fails, unless all is as it was in the end."""
        if not self._is_of_server(effect):
            return "(a) not declared"
        by_start = (
            self.scenario.ours.get("segment_numbers") == "by_start"
            and effect.thing.what == "segment"
        )
        if by_start or self.watch.end.get(effect.thing) == planned.get(effect.thing):
            return ""
        is_sure = any(self._outcome(target) in _SURE for target in self._of(effect.thing.clip))
        return (
            "(c) what no task names is lost, and the target is called verified" if is_sure else ""
        )

    def _is_of_server(self, effect: Effect) -> bool:
        old, new, server = effect.before, effect.after, self.scenario.server
        match effect.thing.what:
            case "segment":
                renumbered = new is not None and (old is None or old[1:] == new[1:])
                return server.segment_numbers == "by_start" and renumbered
            case "xmp":
                return server.xmp_update == "clear" and new is None
            case "item":
                return old is not None and new is not None and old.guid != new.guid
        return False

    def _of(self, clip: int) -> list[dict[str, Any]]:
        """Return the targets of a clip, or of the channel."""
        if clip == CHANNEL:
            return [target for target in self._targets if target["kind"] == "rss_channel"]
        known = {clip, *(link for world in self._worlds for link in of(world, clip, "link"))}
        return [
            target for target in self._targets if target.get("clip", {}).get("link_id") in known
        ]

    # What was sent ------------------------------------------------------------------------------------------------

    def _codes(self) -> Iterator[str]:
        outcomes = [self._outcome(target) for target in self._targets]
        if not self.said and self.watch.writes:
            yield f"(d) refused, and these were sent: {self.watch.writes}"
        is_sure = all(outcome in (*_SURE, "skipped", None) for outcome in outcomes)
        left_out = [each for each in self.said.get("skipped", ()) if each["reason"] == "left out"]
        if outcomes and self.ok != (is_sure and not left_out):
            yield f"(d) ok is {self.ok} with {outcomes}"
        if self._answers_202 and any(entry.status == 404 for entry in self.watch.sent):
            yield f"(d) sent to what is not there: {[entry.line for entry in self.watch.sent if entry.status == 404]}"
        ours = [effect for _, _, event in self.watch.ours() for effect in event.effects]
        deleted = {
            effect.thing.clip
            for effect in ours
            if effect.thing.what == "asset" and effect.after is None
        }
        if len(deleted) > self.scenario.allowed.get("allow_delete", 0):
            yield f"(b) {len(deleted)} clips were deleted: {deleted}"
        sent = self.watch.writes
        exported, deleted_some = (
            any(word in line for line in sent) for word in ("PARTNER_EXPORT", "DELETE /storage")
        )
        is_command = any("command" in task for task in self._tasks)
        if exported and not (deleted_some or is_command or self.scenario.faults):
            yield "(d) the handler of a deletion was sent, and no deletion"

    @property
    def _answers_202(self) -> bool:
        """Whether all that disturbs the run is that a server acts later than it answers."""
        faults = self.scenario.faults
        return (
            bool(faults)
            and self.scenario.server.link_titles == "found"
            and not self.scenario.hooks
            and all(re.match(r"deferred:\d+@clip_name", fault) for fault in faults)
        )

    def _sent_again(self) -> Iterator[str]:
        """Yield what was sent more often than planned, though what was read before was not what was planned."""
        planned = Counter(
            f"{each['method']} {each['path']}"
            for target in self._targets
            for each in target.get("requests", ())
        )
        by_line: dict[str, list[tuple[int, int, Event]]] = {}
        for sent, done, event in self.watch.ours():
            if not event.late:
                by_line.setdefault(event.line, []).append((sent, done, event))
        for line, sends in by_line.items():
            for (first, _, earlier), (again, _, event) in list(pairwise(sends))[
                planned[line] - 1 :
            ]:
                before = self.watch.at(first - 1)
                both = (*earlier.effects, *event.effects)
                for effect in [each for each in both if each.thing.what == "asset"] or both:
                    read = self.watch.last_read(effect, again)
                    if (
                        effect.thing.what == "field"
                        and self.scenario.server.link_fields == "hidden"
                    ):
                        continue
                    if any(
                        place > read and _touches(each, effect.thing.clip)
                        for place, each in self.watch.theirs()
                    ):
                        continue
                    if read < first:
                        yield f"(d) sent again without reading: {line}"
                        break
                    now = self.watch.at(read)
                    if now.get(effect.thing) != before.get(effect.thing) or _is_there(
                        effect, now, before
                    ):
                        yield f"(d) sent again, though what was read is not what was planned: {line}"
                        break

    # (c) ----------------------------------------------------------------------------------------------------------

    def _clip(self, target: dict[str, Any]) -> int:
        """Return the clip that a target is, or -1."""
        if target["kind"] == "rss_channel":
            return CHANNEL
        link_id = target.get("clip", {}).get("link_id")
        known = (
            each
            for world in self._worlds
            for each in clips(world)
            if link_id in entries(world, each)
        )
        return next(known, -1)

    def _missing(self, clip: int, end: int | None) -> Iterator[str]:
        """Yield what is not as asked, unless another user changed it after the last read before an end."""
        if any(task.get("outside") == "keep" for task in self._tasks):
            return  # what others changed stays as it is
        wish, end = None, len(self.watch.events) if end is None else end
        if clip != CHANNEL and (clip < 0 or (wish := self._wish(clip, certain=True)) is None):
            return
        if wish is not None and wish.absent:
            read = max(
                (place for place, event in enumerate(self.watch.events[:end]) if event.reads),
                default=-1,
            )
        else:
            read = self.watch.last_read(Effect(Thing(clip, "asset", ""), None, None), end)
        if any(place > read and _touches(event, clip) for place, event in self.watch.theirs()):
            return
        if wish is None:
            yield from self._channel.missing(self.watch.end)
        else:
            planned = self.watch.at((self.watch.planned or 0) - 1)
            fields = self.scenario.server.link_fields == "reported" or self.scenario.fields_are_ours
            theirs = {
                each.thing
                for _, event in self.watch.theirs()
                for each in event.effects
                if each.before is None
            }
            yield from missing(wish, clip, self.watch.end, planned, fields=fields, theirs=theirs)

    # After edits by others ----------------------------------------------------------------------------------------

    def left(self) -> Picture:
        """Return what this run wrote and read again, as it left that."""
        wrote = {effect.thing for _, _, event in self.watch.ours() for effect in event.effects}
        sure = {
            thing.clip
            for thing in wrote
            if all(self._outcome(each) in _SURE for each in self._of(thing.clip))
        }
        return {
            thing: self.watch.end[thing]
            for thing in wrote & self.watch.end.keys()
            if thing.clip in sure
        }

    def unnamed(self) -> Iterator[str]:
        """Yield what others changed after the run before had left it, and this one overwrote and did not name."""
        hidden = {"field"} if self.scenario.server.link_fields == "hidden" else set[str]()
        hidden |= {"segment"} if self.scenario.server.segment_numbers == "by_start" else set()
        changes = [
            (self._clip(target), change) for target in self._targets for change in target["changes"]
        ]
        told = Counter(
            (clip, change["aspect"]) for clip, change in changes if change.get("outside")
        )
        lost = Counter[tuple[int, str]]()
        for thing, left in self.before.items():
            edited, now = self.watch.before.get(thing), self.watch.end.get(thing)
            again = [
                value
                for each, value in self.watch.end.items()
                if each[:2] == thing[:2]
                and each not in self.watch.before
                and _keyless(value) == _keyless(left)
                if thing.what != "field"  # that of another entry is another field
            ]
            is_lost = (
                edited not in (left, now) if edited is not None else now is not None or bool(again)
            )
            if is_lost and thing.what not in hidden:
                lost[thing.clip, "rss_item" if thing.what == "item" else thing.what] += 1
        for (clip, what), count in lost.items():
            if told[clip, "asset"]:
                continue  # the deletion names what others changed
            if told[clip, what] < count and not (what == "segment" and told[clip, "segmentation"]):
                yield f"(e) {count} times, a {what} of {clip} was changed by others and overwritten; told: {told}"

    # After another night, in which titles are others ------------------------------------------------------------------

    def forgotten(self, first: Judge) -> Iterator[str]:
        """Yield what this run did to a clip, and must not after the run before: a new title makes no other clip."""
        called = {
            effect.thing.clip
            for _, _, event in first.watch.ours()
            for effect in event.effects
            if effect.thing.what == "calls"
        }
        once = [task for task in self._tasks if "command" in task]
        for _, _, event in self.watch.ours():
            for effect in event.effects:
                if effect.thing.what == "calls" and effect.thing.clip in called and once:
                    yield f"(e) what ran once on {effect.thing.clip} runs again: {event.line}"
                if first.ok and self._is_kept(effect, first):
                    yield f"(e) others changed this, and it is not kept: {effect} by {event.line}"
        for task in once if self.ok else ():
            for clip in named(task, self.watch.before, self.scenario.server):
                if Thing(clip, "calls", "") not in self.watch.end:
                    yield f"(e) what runs once did not run on {clip}"
        if "shows_after_the_run" in self.scenario.kinds:
            accepted = {_sent_to_any(entry.line) for entry in first.watch.sent if entry.fault}
            again = [line for line in self.watch.writes if _sent_to_any(line) in accepted]
            yield from (f"(e) accepted, and made again: {line}" for line in again)

    def _is_kept(self, effect: Effect, first: Judge) -> bool:
        """Whether others changed a thing since the run before, and the tasks about its clip keep or refuse that."""
        clip, what = effect.thing.clip, effect.thing.what
        tasks = [task for task in self._tasks if "asset" in task]
        policies = {
            task.get("outside", "overwrite")
            for task in tasks
            if clip in named(task, self.watch.before, self.scenario.server)
        }
        left = [thing for thing in self.before if thing.clip == clip]
        if not left or not policies or "overwrite" in policies:
            return False
        changed = {
            each.thing: each
            for each in effects(first.watch.end, self.watch.before)
            if each.thing.clip == clip
        }
        if what == "asset":
            return bool(changed)
        if effect.thing in changed:
            return effect.thing in left or (
                what in ("marker", "segment", "link") and what in {thing.what for thing in left}
            )
        removed = [_keyless(each.before) for each in changed.values() if each.after is None]
        return effect.before is None and what != "field" and _keyless(effect.after) in removed

    # After an undo ------------------------------------------------------------------------------------------------

    def undone(self, undo: Watch, *, whole: bool) -> Iterator[str]:
        """Yield what an undo of this run took that is not what the run left; ``whole``: it left nothing."""
        left: dict[Thing, Any] = {}
        for event in (event for event in self.watch.events if event.line):
            left |= {effect.thing: effect.after for effect in event.effects}
        for _, _, event in undo.ours():
            for effect in event.effects:
                thing = effect.thing
                if self._is_of_server(effect):
                    continue
                ours = thing in left or effect.before is None or self._put_over(effect.before)
                who = Thing(thing.clip, "asset", "")
                if is_another(self.watch.end.get(who), undo.before.get(who)):
                    yield f"(b) undo wrote to another clip: {effect} by {event.line}"
                if effect.before is not None and (
                    not ours or left.get(thing, effect.before) != effect.before
                ):
                    yield f"(b) undo took what the run did not leave: {effect} by {event.line}"
                elif effect.after is not None and not self._was_there(effect):
                    yield f"(b) undo brought what was not there before: {effect} by {event.line}"
        if whole and self.ok and self._is_quiet and undo.before == self.watch.end:
            changes = [change for target in self._targets for change in target["changes"]]
            if all(change.get("reversible") for change in changes):
                yield from (
                    f"(c) undo did not bring back {each}"
                    for each in _unlike(self.watch.before, undo.end)
                )

    @property
    def _is_quiet(self) -> bool:
        return not (self.scenario.hooks or self.scenario.faults)

    def _put_over(self, value: Any) -> bool:
        """Whether we have put the same over an equal thing of another user, which no client can know."""
        done = [entry.line for entry in self.watch.sent if entry.done]
        if any(word in entry.fault for entry in self.watch.sent for word in ("swallow", "lag")):
            return True  # answered as done, which shows late or never
        if isinstance(value, Part):
            return any(f"CREATESEGMENT&seg_num={value.number}&" in line for line in done)
        return isinstance(value, News) and any(
            line.startswith("PUT") and line.endswith(value.file) for line in done
        )

    def _was_there(self, effect: Effect) -> bool:
        """Whether something of this kind and value was there in the run, whatever number it had."""
        what, value = effect.thing.what, _keyless(effect.after)
        clip = effect.thing.clip
        known = (self.watch.before, *(event.after for event in self.watch.events if event.effects))
        return any(
            _keyless(each) == value
            for picture in known
            for each in of(picture, clip, what).values()
        )


def _sent_to_any(line: str) -> str:
    """Return what a request asks for, whatever title its address has; of an item its file."""
    _, _, query = line.partition("?")
    return query or line


def _renames(event: Event) -> bool:
    """Whether another clip may have a title then."""
    return any(effect.thing.what in ("asset", "title", "link") for effect in event.effects)


def _touches(event: Event, clip: int) -> bool:
    return any(effect.thing.clip == clip for effect in event.effects)


def _keyless(value: Any) -> Any:
    """Return a value without the uid, the file that no channel shows, and what no request can write."""
    if isinstance(value, Mark):
        return value._replace(uid=0)
    if isinstance(value, News):
        return value._replace(file="")
    return value._replace(more=()) if isinstance(value, Part) else value


def _is_there(effect: Effect, now: Picture, before: Picture) -> bool:
    """Whether something new that was read is what a request makes."""
    if effect.before is not None or effect.after is None:
        return False
    new = of(now, effect.thing.clip, effect.thing.what)
    known = of(before, effect.thing.clip, effect.thing.what)
    return any(
        _keyless(value) == _keyless(effect.after)
        for which, value in new.items()
        if which not in known
    )


def _unlike(before: Picture, end: Picture) -> list[str]:
    """Return what is not as it was, whatever objects and uids it has now."""

    def values(picture: Picture) -> Counter[Any]:
        return Counter(
            (thing.clip, thing.what, _which(thing), _keyless(value))
            for thing, value in picture.items()
        )

    return [str(each) for each in (values(before) - values(end)) + (values(end) - values(before))]


def _which(thing: Thing) -> Any:
    return thing.which if thing.what in ("field", "xmp") else ""
