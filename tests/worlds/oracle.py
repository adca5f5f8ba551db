"""What must not be when a playbook is applied, whatever the planner does.

The oracle sees the tasks, what the server held at each moment, every request with what it changed, and the result that
msauto printed. It does not prescribe requests. It reports these faults:

- (a) a clip was changed that no task names, or a thing of it that no task declares
- (b) an item was lost that the playbook neither names nor consents to lose
- (c) a target is called changed or unchanged, and is not as asked, or not on the clip that was planned
- (d) the exit code, the outcomes and the requests do not fit each other

A change by another user between the last read of a clip and a write to it cannot be noticed by any client.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from urllib.parse import unquote

from tests.worlds.language import Wish, declares, loss, missing, named, shown_guid, stem, wish_of
from tests.worlds.picture import Clip, Effect, Mark, News, Picture
from tests.worlds.scenario import Scenario, Task
from tests.worlds.watch import HOOK, WRITES, Event, Watch

_EMPTIED = 3  # removing all items of a list of so many needs --allow-remove
_SURE = ("changed", "unchanged")


@dataclass(frozen=True)
class Judge:
    """One run to be judged: ``said`` is its JSON."""

    scenario: Scenario
    watch: Watch
    code: int
    said: dict[str, Any]

    def faults(self) -> Iterator[str]:
        """Yield all that is wrong."""
        yield from self._codes()
        for place, event, effect in self.watch.ours():
            yield from self._of_clip(place, event, effect) if effect.clip else self._of_channel(event, effect)
        yield from self._limits()
        for target in self._targets:
            if self._outcome(target) in _SURE:
                told = f"(c) {target['name']} is called {self._outcome(target)}"
                wrong = self._verified_channel() if target["kind"] == "rss_channel" else self._verified(target)
                yield from (f"{told}: {each}" for each in wrong)

    # What tasks name ------------------------------------------------------------------------------------------

    @cached_property
    def _targets(self) -> list[dict[str, Any]]:
        return list(self.said.get("targets") or ())

    @staticmethod
    def _outcome(target: dict[str, Any]) -> str | None:
        outcome: str | None = (target.get("result") or {}).get("outcome")
        return outcome

    @cached_property
    def _worlds(self) -> list[Picture]:
        """What the server can have held when it was planned: before, and after a change by another user."""
        hook = self.watch.hook
        written = any(event.method in WRITES for event in self.watch.events[:hook])
        return [self.watch.before, *([self.watch.events[hook].after] if hook is not None and not written else [])]

    @cached_property
    def _planned(self) -> dict[int, Wish]:
        """The clips of the printed targets that tasks name, each with what can be asked of it."""
        said = {_link_id(target) for target in self._targets}
        found: dict[int, list[Task]] = {}
        for task in self._assets:
            for clip in (clip for world in self._worlds for clip in named(task, world, self.scenario.server)):
                tasks = found.setdefault(clip.number, [])
                if said & clip.entries.keys() and task not in tasks:
                    tasks.append(task)
        return {number: wish_of(tasks) for number, tasks in found.items() if tasks}

    @cached_property
    def _assets(self) -> list[Task]:
        return [task["asset"] for task in self.scenario.tasks if "asset" in task]

    def _certain(self, clip: Clip) -> Wish | None:
        """Return what is asked of a clip by tasks that name it, and no other clip, in all worlds."""
        tasks = [task for task in self._assets if all(self._names(task, clip, world) for world in self._worlds)]
        return wish_of(tasks) if tasks else None

    def _names(self, task: Task, clip: Clip, world: Picture) -> bool:
        numbers = [each.number for each in named(task, world, self.scenario.server)]
        return clip.number in numbers and ("select" in task or len(numbers) == 1)

    def _clip(self, number: int) -> Clip | None:
        """Return a clip as it was planned."""
        return next((world.clips[number] for world in self._worlds if number in world.clips), None)

    # (a) and (b) ----------------------------------------------------------------------------------------------

    def _of_clip(self, place: int, event: Event, effect: Effect) -> Iterator[str]:
        if self._unknowable(place, event):
            return
        what = f"{effect.what} {effect.key!r} of {effect.clip}: {effect.before!r} → {effect.after!r} by {event.line}"
        wish, clip = self._planned.get(effect.clip), self._as_read(place, event, effect)
        if wish is None or clip is None:
            yield f"(a) a clip that no target is: {what}"
            return
        old, new = effect.before, effect.after
        if isinstance(old, Mark) and isinstance(new, Mark) and old.at != new.at and self._reused(old.uid):
            effect = replace(effect, after=None)
        if not declares(wish, effect):
            yield f"(a) not declared: {what}"
        if effect.before is not None and (reason := loss(wish, effect, clip)):
            yield f"(b) {reason}: {what}"

    def _reused(self, uid: int) -> bool:
        """Whether a marker was deleted and a new one can have its uid: late work shows both as one change."""
        sent = [entry.line for entry in self.watch.writes]
        created = any("command=CREATEMARKER" in line and "uid=-1" in line for line in sent)
        return created and any("command=DELETEMARKER" in line and f"uid={uid}" in line.split("&") for line in sent)

    def _unknowable(self, place: int, event: Event) -> bool:
        """Whether the world changed after the clip of a request was read for the last time."""
        hook, earlier = self.watch.hook, self.watch.events[:place]
        if hook is None or hook > place:
            return False
        reads = [number for number, each in enumerate(earlier) if _reads(each, event.address)]
        written = any(each.address == event.address and each.method in WRITES for each in earlier)
        at_a_read = self.scenario.hook is not None and "GET" in self.scenario.hook[1]  # else some writes are under way
        if self.scenario.pause and at_a_read and not written and event.method != "DELETE":
            return False  # what was read two minutes before is read again
        read_again = event.method != "DELETE" or len(reads) > 1
        return read_again and not any(number > hook for number in reads)

    def _as_read(self, place: int, event: Event, effect: Effect) -> Clip | None:
        """Return a clip as it was planned; before it is deleted, itself and its links are read again."""
        planned = self._clip(effect.clip)
        if planned is None or effect.what != "asset":
            return planned
        earlier = self.watch.events[:place]
        clips = [each.after.clips.get(effect.clip) for each in earlier if _reads(each, event.address)]
        lists = [each.after.clips.get(effect.clip) for each in earlier if each.method == "GET" and not _title(each)]
        clip, listed = (next((each for each in reversed(some) if each), planned) for some in (clips, lists))
        return replace(clip, links=listed.links)

    def _of_channel(self, event: Event, effect: Effect) -> Iterator[str]:
        """Judge what became of the items of one file."""
        what = f"{effect.key!r}: {effect.before!r} → {effect.after!r} by {event.line}"
        old, new = _news(effect.before), _news(effect.after)
        for item in (item for item in old if item not in new):
            by_key = [each for each in self._items if self._is_item(each, item)]
            hidden = new and stem(item.file) != item.guid != item.file  # a channel shows no files
            if not by_key and not hidden and not (self._exactly and not new):
                yield f"(b) an item was lost that no task names: {what}"
            removed = not new and by_key and all(each.get("state") != "absent" for each in by_key)
            files = {each.get("file") for each in by_key}
            there = any(self._is_item(each, live) or live.file in files for each in by_key for live in self._end.items)
            if removed and self.code == 0 and not there:
                yield f"(b) a desired item was removed: {what}"
        if any(item not in old for item in new) and all(each.get("file") != effect.key for each in self._items):
            yield f"(a) an item that no task declares: {what}"

    @cached_property
    def _items(self) -> list[Task]:
        return [item for task in self.scenario.tasks if "rss" in task for item in task["rss"]["items"]]

    @property
    def _exactly(self) -> bool:
        return any(task["rss"].get("exactly") for task in self.scenario.tasks if "rss" in task)

    def _is_item(self, item: Task, live: News) -> bool:
        """Whether a task's item is this one; a server that names items by their files has no other guids."""
        rule = self.scenario.server.rss_guid
        by_file = rule != "item" and (item.get("file") == live.file or item["guid"] == stem(live.file))
        if self.scenario.ours.get("rss_guid") == "stem":  # then the playbook's user says that stems are the guids
            by_file = by_file or stem(item.get("file", "")) == stem(live.file)
        return bool(by_file or item["guid"] == shown_guid(live, rule))

    def _limits(self) -> Iterator[str]:
        known = [effect for place, event, effect in self.watch.ours() if not self._unknowable(place, event)]
        deleted = {effect.clip for effect in known if effect.what == "asset" and effect.after is None}
        if len(deleted) > self.scenario.allowed.get("--allow-delete", 0):
            yield f"(b) {len(deleted)} clips were deleted: {deleted}"
        if "--allow-remove" in self.scenario.allowed:
            return
        for number, wish in self._planned.items():
            clip = self.watch.before.clips.get(number)
            if clip is None or number in deleted:
                continue
            lost = {(each.what, each.key) for each in known if each.clip == number and _is_lost(each)}
            marks = {("marker", mark.uid) for mark in clip.marks}
            parts = {("segment", part.number) for part in clip.parts}
            if len(clip.marks) >= _EMPTIED and marks <= lost and not wish.markers:
                yield f"(b) all markers of {clip.title} were lost without --allow-remove"
            if len(clip.parts) >= _EMPTIED and parts <= lost and not wish.segments and not wish.divided:
                yield f"(b) all segments of {clip.title} were lost without --allow-remove"

    # (c) ------------------------------------------------------------------------------------------------------

    def _verified(self, target: dict[str, Any]) -> Iterator[str]:
        if target["kind"] != "asset" or not target["changes"] + target["looked"]:
            return  # an asset that is not there
        clip = next((clip for world in self._worlds if (clip := world.of_entry(_link_id(target)))), None)
        if clip is None:
            yield f"no clip had its link_id {_link_id(target)}"
            return
        hook = self.watch.hook
        if hook is not None and (self._outcome(target) == "unchanged" or hook >= self._last_read_of(clip)):
            return  # what another user changes after the last read is unknown
        wish = self._certain(clip)
        if wish is None:
            return
        wish = self._knowable(wish, clip, target)
        theirs = frozenset(effect.what for effect in self._theirs if effect.clip == clip.number)
        yield from missing(wish, self._end.clips.get(clip.number), clip, theirs)

    @property
    def _end(self) -> Picture:
        return self.watch.events[-1].after if self.watch.events else self.watch.before

    @property
    def _theirs(self) -> tuple[Effect, ...]:
        """What another user changed."""
        return () if self.watch.hook is None else self.watch.events[self.watch.hook].effects

    def _last_read_of(self, clip: Clip) -> int:
        """When an address of the clip was read for the last time."""
        wish = self._planned.get(clip.number)
        titles = {title for _, title in clip.entries.values()} | (wish.titles if wish else frozenset())
        return max((n for n, event in enumerate(self.watch.events) if _title(event) in titles), default=-1)

    def _knowable(self, wish: Wish, clip: Clip, target: dict[str, Any]) -> Wish:
        """Return what the server shows of what is asked, without what another user changed and the plan did not."""
        ours = {(change["aspect"], change["key"]) for change in target["changes"]}
        theirs = [effect for effect in self._theirs if effect.clip == clip.number]
        fields = {effect.key[1] for effect in theirs if isinstance(effect.key, tuple)}
        marks = [mark for effect in theirs for mark in (effect.before, effect.after) if isinstance(mark, Mark)]
        others = [item for item in wish.markers if ("marker", f"uid {item.get('uid')}") not in ours]
        touched = [item for mark in marks for item in wish.marker(mark) if item in others]
        rule = self.scenario.server.link_fields
        hidden = rule == "hidden" or (rule == "reported_when_set" and not clip.fields)
        return replace(
            wish,
            fields={n: t for n, t in wish.fields.items() if not hidden and (n not in fields or ("field", n) in ours)},
            markers=tuple(item for item in wish.markers if item not in touched or ("marker", _at_key(item)) in ours),
            segments=tuple(
                item
                for item in wish.segments
                if ("segment", str(item["number"])) in ours
                or all((each.what, each.key) != ("segment", item["number"]) for each in theirs)
            ),
        )

    def _verified_channel(self) -> Iterator[str]:
        if any(not effect.clip for effect in self._theirs):
            return
        rule = self.scenario.server.rss_guid
        for item in self._items:
            if item.get("state") == "absent":
                yield from (f"{item} is there" for live in self._end.items if shown_guid(live, rule) == item["guid"])
                continue
            content = item.get("text") or item["item"]["description"]
            by_guid = rule == "item" and "item" in item
            at_file = [live for live in self._end.items if live.file == item["file"]]
            found = [live for live in at_file if not by_guid or live.guid == item["guid"]]
            if [live.description for live in found] != [content]:
                yield f"{item} is not there once: {found}"

    # (d) ------------------------------------------------------------------------------------------------------

    def _codes(self) -> Iterator[str]:
        sent = [entry.line for entry in self.watch.writes]
        outcomes = [self._outcome(target) for target in self._targets]
        fine = all(outcome in (*_SURE, "skipped", None) for outcome in outcomes)
        if self.code in (1, 4) and sent:
            yield f"(d) exit code {self.code}, and these were sent: {sent}"
        if self.code not in (0, 1, 3, 4) or (self.code in (0, 3) and fine != (self.code == 0)):
            yield f"(d) exit code {self.code} with {outcomes}"

    def undone(self, undo: Watch) -> Iterator[str]:
        """Yield what an undo of this run took that is not what the run left."""
        done = [effect for event in self.watch.events if event.line != HOOK for effect in event.effects]
        left = {(effect.clip, effect.what, effect.key): effect.after for effect in done}
        lost = [effect.before for effect in done]
        for _, event, effect in undo.ours():
            if effect.before is not None and left.get((effect.clip, effect.what, effect.key)) != effect.before:
                yield f"(b) undo took what the run did not leave: {effect} by {event.line}"
            if effect.before is None and effect.what in ("field", "xmp") and effect.after not in lost:
                yield f"(b) undo brought what was not there before: {effect} by {event.line}"


def _link_id(target: dict[str, Any]) -> int | None:
    """Return the entry that a target of the plan was read from."""
    link_id: int | None = target.get("clip", {}).get("link_id")
    return link_id


def _at_key(item: Task) -> str:
    """Return how a plan names a new marker."""
    return f"{item.get('track', 'General')}@{item.get('at')}"


def _reads(event: Event, address: str) -> bool:
    """Whether a request read which clip is at an address; its XMP fields do not show that."""
    return event.method == "GET" and event.address == address


def _title(event: Event) -> str | None:
    """Return the title that a request read."""
    _, is_asset, rest = event.address.partition("@")
    return unquote(rest.partition("/")[0]) if is_asset and event.method == "GET" else None


def _news(value: object) -> tuple[News, ...]:
    return value if isinstance(value, tuple) else ()


def _is_lost(effect: Effect) -> bool:
    """Whether nothing is left of all that had a key."""
    old, new = effect.before, effect.after
    if isinstance(old, tuple):
        return not isinstance(new, tuple) or not set(old) & set(new)
    return isinstance(old, Mark) and not (isinstance(new, Mark) and new.at == old.at)
