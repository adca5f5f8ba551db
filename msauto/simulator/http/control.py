"""The control of a simulator in another process: `/_simulator/...`, all JSON.

`GET log`, `GET state`, `GET dialect`. `POST reset`: to the state at the start, without log and faults.
`PUT faults`: a list of texts. `PUT dialect`: an object of keys, or a list of `key=value` texts.
`PUT state`: in the format of `GET state`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from msauto.simulator.dialect import SimDialect
from msauto.simulator.faults import Faults
from msauto.simulator.http.answers import HttpAnswer, text_answer
from msauto.simulator.http.log import RequestLog
from msauto.simulator.http.wire import HttpRequest
from msauto.simulator.resources.routes import Routes
from msauto.simulator.state.state import ServerState
from msauto.simulator.state.state_file import state_from_json, state_to_json

CONTROL_PREFIX = "/_simulator/"


@dataclass(slots=True)
class Control:
    """The control requests. `initial_state` makes the state of a reset."""

    routes: Routes
    faults: Faults
    log: RequestLog
    initial_state: Callable[[], ServerState]

    def answer(self, request: HttpRequest) -> HttpAnswer:
        """Answer one control request; the log and the faults ignore it."""
        actions: dict[tuple[str, str], Callable[[HttpRequest], Any]] = {
            ("GET", "log"): lambda _: [entry.as_dict() for entry in self.log.entries()],
            ("GET", "state"): lambda _: state_to_json(self.routes.state),
            ("GET", "dialect"): lambda _: self.routes.dialect.as_dict(),
            ("POST", "reset"): lambda _: self._reset(),
            ("PUT", "state"): self._put_state,
            ("PUT", "faults"): self._put_faults,
            ("PUT", "dialect"): self._put_dialect,
        }
        action = actions.get((request.method, request.raw_path.removeprefix(CONTROL_PREFIX)))
        if action is None:
            return text_answer("unknown control request", 404, done=False)
        try:
            value = action(request)
        except (ValueError, TypeError) as problem:
            return text_answer(str(problem), 400, done=False)
        return HttpAnswer(200, json.dumps(value, ensure_ascii=False).encode(), "application/json")

    def _reset(self) -> str:
        self.routes.state = self.initial_state()
        self.routes.media.proxies.clear()
        self.routes.writes += 1
        self.faults.clear()
        self.log.clear()
        return "reset"

    def _put_state(self, request: HttpRequest) -> str:
        try:
            self.routes.state = state_from_json(json.loads(request.body))
        except (KeyError, AttributeError) as problem:
            raise ValueError(f"not a state: {problem!r}") from None
        self.routes.writes += 1
        return "changed"

    def _put_faults(self, request: HttpRequest) -> dict[str, int]:
        self.faults.replace([str(text) for text in json.loads(request.body)])
        return self.faults.hits()

    def _put_dialect(self, request: HttpRequest) -> dict[str, str]:
        given = json.loads(request.body)
        if isinstance(given, dict):
            self.routes.dialect = SimDialect().with_values(given)
        else:
            self.routes.dialect = SimDialect.parse(str(pair) for pair in given)
        return self.routes.dialect.as_dict()
