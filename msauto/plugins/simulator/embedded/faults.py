"""Faults: which ones exist, which requests they apply to, and what each one does.

The faults `before` and `after` are hooks: they change the content as another user does, and the request is answered
as without them. `%3A` and `%40` in the text of a change stand for a colon and an at sign.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from urllib.parse import unquote

from msgspec import Struct, structs

from msauto.plugins.simulator.embedded.state import ServerState, SimDatabase, SimEntry
from msauto.plugins.simulator.embedded.wire import GARBAGE, HttpAnswer, text_answer

Change = Callable[[ServerState], object]
HOOKS = ("before", "after")
# Each kind, and an example of the number that it needs.
KINDS = {
    "status": 503,
    "done_status": 503,
    "lag": 5,
    "delay": 5,
    "cut_before": None,
    "cut_after": None,
    "garbage": None,
    "partial": None,
    "truncate": None,
    "cut_at": 100,
    "swallow": None,
    "late": 5,
    "deferred": 2,
    "html": None,
    "slow_body": None,
}
# The changes of hooks, and what each one needs.
CHANGES = {
    "rename": "OLD:NEW",
    "edit": "TITLE:FIELD:VALUE",  # sets a link field
    "delete": "TITLE",  # removes a clip with all its entries
    "swap": "ONE:OTHER",  # exchanges the titles of two entries
    "rerecord": "TITLE",  # puts another recording, a day younger and with nothing written on it, in the place of a clip
}
_TEXT = re.compile(
    r"(?P<kind>[a-z_]+(?::[^@]*)?)@(?P<match>.+?)(?:\*(?P<times>\d+))?(?:\+(?P<after>\d+))?"
)
_LOGIN = b"<!DOCTYPE html><html><head><title>Sign in</title></head><body><form>Please sign in</form></body></html>"


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault for requests in whose `METHOD raw_path?query` the pattern `match` is found.

    `kind` is a name of `KINDS` with its numbers, such as `status:503`, or a hook: `before:CHANGE` changes the content
    before the request, `after:CHANGE` before its answer is sent. CHANGE is a text such as `rename:OLD:NEW`; in Python,
    the kind can be `before` or `after` alone, and `change` what to do with the state.
    `times`: how often (None: always). `after`: how many matching requests are skipped first.
    """

    match: str
    kind: str
    times: int | None = None
    after: int = 0
    change: Change | None = None

    def __post_init__(self) -> None:
        name, colon, argument = self.kind.partition(":")
        if name in HOOKS:
            if self.change is None:
                object.__setattr__(self, "change", parse_change(argument))
            return
        if name not in KINDS:
            raise ValueError(f"unknown fault {name!r}; known: {', '.join((*KINDS, *HOOKS))}")
        if KINDS[name] is not None and not colon:
            raise ValueError(f"the fault {name} needs a number, such as {name}:{KINDS[name]}")
        try:
            numbers = self.arguments
            re.compile(self.match)
        except (ValueError, re.error) as problem:
            raise ValueError(f"fault {self.kind}@{self.match}: {problem}") from None
        if not all(0 <= number < math.inf for number in numbers):
            raise ValueError(f"the fault {name} takes numbers from 0 to 1e308, not {argument[:20]}")
        if name.endswith("status") and not 200 <= numbers[0] <= 599:
            raise ValueError(f"the status of a fault is 200 to 599, not {argument[:20]}")

    @classmethod
    def parse(cls, text: str) -> Fault:
        """`KIND@REGEX[*TIMES][+SKIP]`, e.g. `cut_after@POST .*CREATEMARKER*1` or `after:swap:A:B@GET`."""
        match = _TEXT.fullmatch(text)
        if match is None:
            raise ValueError(f"a fault is KIND@REGEX[*TIMES][+SKIP], not {text!r}")
        times = int(match["times"]) if match["times"] else None
        return cls(match["match"], match["kind"], times, int(match["after"] or 0))

    @property
    def arguments(self) -> list[float]:
        """The numbers after the kind."""
        return [float(part) for part in self.kind.split(":")[1:]]


class _ActiveFault(Struct):
    fault: Fault
    matched: int = 0
    hits: int = 0

    def applies(self, line: str) -> bool:
        fault = self.fault
        if (fault.times is not None and self.hits >= fault.times) or not re.search(
            fault.match, line
        ):
            return False
        self.matched += 1
        if self.matched <= fault.after:
            return False
        self.hits += 1
        return True


class Faults:
    """The active faults: of those that apply to a request, all hooks are used, and the first of the others.

    Any thread can change them.
    """

    def __init__(self, faults: Iterable[Fault | str] = ()) -> None:
        self._active: list[_ActiveFault] = []
        self.add(*faults)

    def add(self, *faults: Fault | str) -> None:
        """Activate faults, given as values or as texts; after a ValueError nothing is changed."""
        added = []
        for fault in faults:
            if isinstance(fault, str):
                fault = Fault.parse(fault)
            added.append(_ActiveFault(fault))
        self._active += added

    def clear(self) -> None:
        """Deactivate all faults."""
        self._active = []

    def hits(self) -> dict[str, int]:
        """Return how often each active fault was applied, by `KIND@REGEX`."""
        return {f"{active.fault.kind}@{active.fault.match}": active.hits for active in self._active}

    def take(self, line: str) -> list[Fault]:
        """Return the faults for this request (`METHOD target`) and count them: hooks, and at most one other."""
        faults: list[Fault] = []
        has_fault = False
        for active in self._active:
            is_hook = active.fault.change is not None
            if has_fault and not is_hook:
                continue
            if active.applies(line):
                faults.append(active.fault)
                has_fault = has_fault or not is_hook
        return faults


class Deferred:
    """Work that waits for later requests, as at a server that answers 202 and acts in its own time."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, Callable[[], object]]] = []

    def add(self, requests: int, work: Callable[[], object]) -> None:
        """Keep work that is to be done before so many requests from now have come."""
        self._waiting.append((max(1, requests), work))

    def pass_request(self) -> None:
        """Do what is due before the next request."""
        waiting, self._waiting = self._waiting, []
        for requests, work in waiting:
            if requests == 1:
                work()
            else:
                self._waiting.append((requests - 1, work))

    def finish(self) -> None:
        """Do all that waits."""
        while self._waiting:
            self.pass_request()


async def answer_with(
    fault: Fault,
    work: Callable[[], HttpAnswer],
    pretend: Callable[[], HttpAnswer],
    deferred: Deferred,
) -> HttpAnswer:
    """Answer a request with its fault. `work` does what it asks for; `pretend` only answers as after success."""

    def status(code: float, *retry_after: float) -> HttpAnswer:
        answer = text_answer("Error: simulated fault", int(code), done=False)
        if retry_after:
            answer.headers["Retry-After"] = str(int(retry_after[0]))
        return answer

    name, _, _ = fault.kind.partition(":")
    numbers, later = fault.arguments, asyncio.get_running_loop().call_later
    match name:
        case "status":
            return status(*numbers)
        case "done_status":
            work()
            return status(*numbers)
        case "lag":
            later(numbers[0], work)
            return status(*numbers[1:]) if numbers[1:] else pretend()
        case "deferred":
            deferred.add(int(numbers[0]), work)
            if numbers[1:]:
                return status(*numbers[1:])
            answer = pretend()
            answer.status = 202
            return answer
        case "delay":
            await asyncio.sleep(numbers[0])
            return work()
        case "cut_after":
            work()
        case "late":
            later(numbers[0], work)
        case "garbage":
            return HttpAnswer(200, GARBAGE, work().content_type)
        case "partial":
            answer = work()
            answer.status = 206
            return answer
        case "truncate":
            answer = work()
            return answer.cut_at(len(answer.whole_body()) // 2)
        case "cut_at":
            return work().cut_at(int(numbers[0]), *numbers[1:2])
        case "swallow":
            return pretend()
        case "html":
            return HttpAnswer(200, _LOGIN, "text/html; charset=utf-8", done=False)
        case "slow_body":
            return work().slowly(*numbers[:1] or [1.0])
    return HttpAnswer(0)


def parse_change(text: str) -> Change:
    """`rename:OLD:NEW` → what makes this change; ValueError for another text."""
    name, *texts = map(unquote, text.split(":"))
    if name not in CHANGES or len(texts) != CHANGES[name].count(":") + 1:
        forms = [f"{change}:{form}" for change, form in CHANGES.items()]
        raise ValueError(f"unknown change {text!r}; known: {'; '.join(forms)}")
    return partial(_change, texts, name)


def _change(texts: list[str], name: str, state: ServerState) -> None:
    """Make a change; a title that no clip has changes nothing."""
    title, *texts = texts
    place = _find(state, title)
    if place is None:
        return
    database, entry = place
    match name, *texts:
        case "rename", new:
            database.change_entry(entry, title=new)
        case "swap", title_of_other:
            other = _find(state, title_of_other)
            if other is not None:
                database.change_entry(entry, title=title_of_other)
                other[0].change_entry(other[1], title=title)
        case "edit", name_of_field, value:
            entry.fields[name_of_field] = value
        case "delete", *_:
            database.remove_clip(entry.clip)
        case "rerecord", *_:
            clip = entry.clip
            database.remove_clip(clip)
            day_after = datetime.fromisoformat(clip.create_time) + timedelta(days=1)
            recording = structs.replace(
                clip,
                file="",
                create_time=day_after.isoformat(),
                entries=[],
                markers=[],
                segments=[],
                xmp={},
            )
            database.put_clip(recording, clip.home.folder, title)


def _find(state: ServerState, title: str) -> tuple[SimDatabase, SimEntry] | None:
    """Return the entry with a title, and its database; the first database that has it."""
    for database in state.databases.values():
        entry = database.find(title)
        if entry is not None:
            return database, entry
    return None
