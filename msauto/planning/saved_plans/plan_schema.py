"""Reading a saved plan: outside text, so it is checked by pydantic, strictly, before any value is made of it."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from msauto.errors import InputError, Problem, SourceLocation
from msauto.model.desired import Batch, InputFile, TaskSource
from msauto.model.live import parse_folder
from msauto.model.plan import (
    Action,
    Address,
    AspectName,
    Basis,
    Body,
    Change,
    Expectation,
    Json,
    Kind,
    Method,
    Plan,
    Refusal,
    Request,
    Settlement,
    Target,
    TargetId,
)
from msauto.planning.saved_plans.plan_integrity import why_dishonest
from msauto.secrets.taint import HIDDEN

FORMAT: Final = "msauto-plan"
VERSION: Final = 1


class _Model(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


class _Source(_Model):
    file: str
    line: int
    column: int
    task: str = ""

    def value(self) -> TaskSource:
        return TaskSource(SourceLocation(self.file, self.line, self.column), self.task)


class _Change(_Model):
    action: Action
    aspect: AspectName
    key: str
    before: JsonValue = None
    after: JsonValue = None
    basis: Basis
    reversible: bool
    source: _Source
    exactly: bool = False
    handler: str = ""
    pending: str = ""
    secret: bool = False

    def value(self) -> Change:
        return Change(
            self.action,
            self.aspect,
            self.key,
            _json(self.before),
            _json(self.after),
            self.basis,
            self.reversible,
            self.source.value(),
            self.exactly,
            self.handler,
            self.pending,
            self.secret,
        )


class _Expect(_Model):
    aspect: AspectName
    key: str
    want: JsonValue = None
    visible: bool = True
    not_uids: list[int] = Field(default_factory=list)
    secret: bool = False
    kept: dict[str, str] = Field(default_factory=dict)

    def value(self) -> Expectation:
        not_uids, kept = tuple(self.not_uids), tuple(self.kept.items())
        return Expectation(self.aspect, self.key, _json(self.want), self.visible, not_uids, self.secret, kept)


class _Body(_Model):
    sha256: str
    media_type: str = "text/plain; charset=utf-8"
    text: str | None = None
    base64: str | None = None

    def value(self) -> Body:
        content = (
            base64.b64decode(self.base64, validate=True) if self.base64 is not None else (self.text or "").encode()
        )
        if hashlib.sha256(content).hexdigest() != self.sha256:
            raise ValueError("the body of a request does not match its sha256")
        return Body(content, self.media_type)


class _Request(_Model):
    method: Method
    path: str = Field(pattern=r"^/[!-~]*$")
    changes: list[int] = Field(default_factory=list)
    body: _Body | None = None
    expect: list[_Expect] = Field(default_factory=list)
    guarded: bool = False
    dest: str | None = None
    secret: bool = False
    result: JsonValue = None

    def value(self) -> Request:
        body = self.body.value() if self.body else None
        if self.dest is not None and self.method != "GET":
            raise ValueError("only a GET can be saved as a file")
        expect = tuple(each.value() for each in self.expect)
        return Request(self.method, self.path, tuple(self.changes), body, expect, self.dest, self.guarded, self.secret)


class _Address(_Model):
    name: str
    namespace: str = ""

    def value(self) -> Address:
        return Address(self.name, self.namespace)


class _Emptied(_Model):
    aspect: AspectName
    count: int


class _Target(_Model):
    server: str
    database: str
    kind: Kind
    name: str
    folder: str | None = None
    fingerprint: str
    changes: list[_Change]
    requests: list[_Request]
    error: str | None = None
    address: _Address
    address_after: _Address
    link_id: int | None = None
    create_time: str | None = None
    looked: list[str]
    rate: str | None = Field(default=None, pattern=r"^[1-9]\d*/[1-9]\d*$")
    wait: float = 0.0
    emptied: list[_Emptied] = Field(default_factory=list)
    places: list[str] = Field(default_factory=list)
    batch: int = 0
    result: JsonValue = None

    def value(self) -> Target:
        if any(not 0 <= number < len(self.changes) for request in self.requests for number in request.changes):
            raise ValueError(f"a request of {self.name!r} names a change that is not there")
        return Target(
            server=self.server,
            database=self.database,
            kind=self.kind,
            name=self.name,
            folder=parse_folder(self.folder) if self.folder is not None else None,
            fingerprint=self.fingerprint,
            changes=tuple(change.value() for change in self.changes),
            requests=tuple(request.value() for request in self.requests),
            error=self.error,
            address=self.address.value(),
            address_after=self.address_after.value(),
            link_id=self.link_id,
            create_time=self.create_time,
            looked=tuple(self.looked),
            rate=Fraction(self.rate) if self.rate else None,
            wait=self.wait,
            emptied=tuple((one.aspect, one.count) for one in self.emptied),
            places=tuple(map(parse_folder, self.places)),
            batch=self.batch,
        )


class _Summary(_Model):
    unchanged: int = 0
    skipped: int = 0
    left_out: int = 0
    reads: int = 0


class _Refusal(_Model):
    code: str
    limit: int | str
    count: int | str
    remedy: str


class _Input(_Model):
    path: str
    sha256: str


class _Server(_Model):
    name: str
    url: str = ""
    unchanged: int = 0


class _Batch(_Model):
    play: str
    servers: list[str]
    max_fail: float | None = None
    fatal: bool = False

    def value(self) -> Batch:
        return Batch(self.play, tuple(self.servers), self.max_fail, self.fatal)


class _Settlement(_Model):
    server: str
    database: str
    kind: Kind
    name: str
    link_id: int | None = None
    create_time: str | None = None
    item: str
    value: JsonValue = None

    def settlement(self) -> Settlement:
        target = TargetId(self.server, self.database, self.kind, self.name, self.link_id, self.create_time)
        return Settlement(target, self.item, _json(self.value))


class _PlanProblem(_Model):
    code: str
    message: str
    file: str | None = None
    line: int = 0
    column: int = 0
    remedy: str = ""


class PlanFile(_Model):
    """The shape of a saved plan."""

    format: Literal["msauto-plan"]
    version: Literal[1]
    created: str
    msauto: str
    inputs: list[_Input] = Field(default_factory=list)
    summary: _Summary
    refusals: list[_Refusal] = Field(default_factory=list)
    warnings: list[str] = Field(default_factory=list)
    servers: list[_Server] = Field(default_factory=list)
    targets: list[_Target]
    batches: list[_Batch] = Field(default_factory=list)
    settlements: list[_Settlement] = Field(default_factory=list)
    problems: list[_PlanProblem] = Field(default_factory=list)
    result: JsonValue = None
    checksum: str

    def value(self) -> Plan:
        """Return the plan; raises ``ValueError`` for parts that do not fit together."""
        return Plan(
            created=self.created,
            msauto=self.msauto,
            inputs=tuple(InputFile(file.path, file.sha256) for file in self.inputs),
            targets=tuple(target.value() for target in self.targets),
            unchanged=self.summary.unchanged,
            skipped=self.summary.skipped,
            left_out=self.summary.left_out,
            reads=self.summary.reads,
            refusals=tuple(Refusal(r.code, r.limit, r.count, r.remedy) for r in self.refusals),
            warnings=tuple(self.warnings),
            servers=tuple(server.name for server in self.servers),
            unchanged_by_server=tuple((server.name, server.unchanged) for server in self.servers),
            urls=tuple((server.name, server.url) for server in self.servers if server.url),
            batches=tuple(batch.value() for batch in self.batches),
            settlements=tuple(one.settlement() for one in self.settlements),
        )


def checksum(data: Mapping[str, Any]) -> str:
    """Return ``sha256:…`` over the canonical JSON of all of a plan but its checksum."""
    rest = {name: value for name, value in data.items() if name != "checksum"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode('ascii')).hexdigest()}"


def read_plan(data: object, path: str) -> Plan:
    """Read the JSON value of a plan file. Raises ``InputError`` with every problem, and the way to it."""
    plan = _check_version(data, path)
    _check_secrets(plan, path)
    for key in ("result", "problems"):
        if key in plan:
            raise _refuse(path, f"this is what `msauto apply` printed, and no plan: it has `{key}`", _REMEDY)
    if plan.get("checksum") != checksum(plan):
        raise _refuse(path, "this plan was changed after it was made, or a part of it is missing", _REMEDY)
    try:
        found = PlanFile.model_validate(plan).value()
    except ValidationError as error:
        problems = [_problem(path, detail) for detail in error.errors(include_url=False, include_input=False)]
        raise InputError(problems) from None
    except ValueError as error:
        raise _refuse(path, str(error), _REMEDY) from None
    why = why_dishonest(found)
    if why is not None:
        raise _refuse(path, why, "do not apply it; make the plan again, and ask who made this one")
    return found


_REMEDY = "make the plan again with `msauto plan --out`; a plan file is not for editing"


def _check_version(data: object, path: str) -> dict[str, Any]:
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise _refuse(path, f"this is no plan: its `format` is not {FORMAT!r}", _REMEDY)
    if data.get("version") != VERSION:
        raise _refuse(
            path,
            f"this plan has version {data.get('version')!r}, and this msauto reads version {VERSION}",
            "apply it with the msauto that made it, or make it again",
        )
    return data


def _check_secrets(data: Mapping[str, Any], path: str) -> None:
    """Refuse a plan of which parts are hidden: nobody may send ``***`` to a server.

    No path of ours holds a plain ``*``, so a request with ``***`` is refused even where somebody took its mark away.
    """
    targets = data.get("targets")
    for target in targets if isinstance(targets, list) else ():
        requests = target.get("requests") if isinstance(target, dict) else None
        for request in requests if isinstance(requests, list) else ():
            if isinstance(request, dict) and (request.get("secret") or HIDDEN in str(request.get("path"))):
                name = str(target.get("name"))
                raise _refuse(path, f"{name!r}: a request sends a secret, which no plan holds", _PLAYBOOKS_INSTEAD)


_PLAYBOOKS_INSTEAD = "apply the playbooks themselves: msauto apply PLAYBOOK"


def _refuse(path: str, message: str, remedy: str) -> InputError:
    return InputError([Problem(message, SourceLocation(path), remedy)])


def _problem(path: str, detail: Any) -> Problem:
    where = ".".join(map(str, detail["loc"]))
    return Problem(f"{where}: {detail['msg']}", SourceLocation(path), _REMEDY)


def _json(value: JsonValue) -> Json:
    """Return the same value: pydantic's name for JSON and ours are one."""
    same: Any = value
    found: Json = same
    return found
