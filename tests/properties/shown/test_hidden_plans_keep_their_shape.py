"""What is shown is what is sent, except for secret texts: redacting a plan changes nothing else of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct, structs

from msauto.model.desired import TaskSource
from msauto.model.plan import (
    Action,
    Body,
    Change,
    Method,
    Plan,
    Request,
    ShownItem,
    Target,
    TargetContext,
)
from msauto.model.requests import encode
from msauto.model.snapshot import AspectName, Effect, Json, Seen
from msauto.secrets.redacted_plans import redact_plan
from msauto.secrets.redaction import HIDDEN, Secrets
from tests.examples import examples

WORDS = ("Ready", "Evening News", "tok-5521-98", "comment", "a b", "caf\u00e9 <&>", "x", "")
TEXT = st.lists(st.sampled_from(WORDS), max_size=3).map(" ".join)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | TEXT | st.integers() | st.booleans(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["title", "user", "n"]), inner)
    ),
    max_leaves=5,
)
SECRETS = st.sets(st.sampled_from([word for word in WORDS if len(word) >= 4]), min_size=1).map(
    Secrets
)


ACTIONS: tuple[Action, ...] = ("add", "change", "delete", "run")
METHODS: tuple[Method, ...] = ("POST", "PUT", "DELETE", "GET")
ASPECTS: tuple[AspectName, ...] = ("field", "xmp", "marker", "segment", "command", "rss_item")


@st.composite
def changes(draw: st.DrawFn) -> Change:
    action, aspect = draw(st.sampled_from(ACTIONS)), draw(st.sampled_from(ASPECTS))
    before, after = draw(JSON), draw(JSON)
    return Change(
        action,
        aspect,
        draw(TEXT),
        before,
        after,
        "live",
        draw(st.booleans()),
        TaskSource("play.yml", 3, 4, "task"),
    )


BODIES = TEXT.map(lambda text: Body.of(text.encode()))
EFFECTS = st.builds(Effect, st.just("field"), TEXT, JSON, JSON)
ITEMS = st.builds(ShownItem, TEXT, TEXT, st.just(0), st.just(1), TEXT)
CONTEXTS = st.builds(TargetContext, st.just(9), st.lists(ITEMS, max_size=2).map(tuple))


@st.composite
def requests(draw: st.DrawFn, count: int) -> Request:
    method = draw(st.sampled_from(METHODS))
    command = draw(st.sampled_from(["SETFIELD", "X"]))
    value = encode(draw(TEXT))
    path = f"/storage/NEWS@EP001?command={command}&val={value}"
    numbers: set[int] = set()
    if count:
        numbers = draw(st.sets(st.integers(0, count - 1)))
    body = draw(st.none() | BODIES)
    effects = draw(st.lists(EFFECTS, max_size=2))
    guarded = draw(st.booleans())
    return Request(method, path, tuple(sorted(numbers)), body, tuple(effects), guarded=guarded)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    targets = []
    for number in range(draw(st.integers(0, 3))):
        made = tuple(draw(st.lists(changes(), max_size=3)))
        sent = tuple(draw(st.lists(requests(len(made)), max_size=3)))
        error = draw(st.none() | TEXT)
        depends_on = Seen.of({"fact x": "0" * 12})
        targets.append(
            Target(
                "studio",
                "NEWS",
                "asset",
                f"EP{number}",
                "Raw",
                "sha256:1",
                made,
                sent,
                error,
                depends_on=depends_on,
                context=draw(st.none() | CONTEXTS),
            )
        )
    warnings = tuple(draw(st.lists(TEXT, max_size=2)))
    return Plan("2026", "0.1", targets=tuple(targets), warnings=warnings, secrets=draw(SECRETS))


def both(real: Any, shown: Any, way: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield the leaves of two values with the way to them; fails where their shapes differ."""
    assert type(real) is type(shown), way
    if isinstance(real, Struct):
        for field in structs.fields(real):
            yield from both(
                getattr(real, field.name), getattr(shown, field.name), f"{way}.{field.name}"
            )
    elif isinstance(real, tuple | list):
        assert len(real) == len(shown), way
        for one, other in zip(real, shown, strict=True):
            yield from both(one, other, way)
    else:
        yield way, real, shown


def texts(value: Json) -> Iterator[str]:
    if isinstance(value, dict):
        for name, each in value.items():
            yield name
            yield from texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts(each)
    elif isinstance(value, str):
        yield value


FLAGS = (".secret", ".reversible", ".fingerprint", ".secrets")


def shape(plan: Plan) -> list[Any]:
    """What a plan does, without the texts in it."""
    return [
        (
            (
                target.server,
                target.database,
                target.kind,
                target.name,
                target.folder,
                target.depends_on.names,
                target.address,
            ),
            [
                (each.action, each.aspect, each.basis, each.source, each.losses)
                for each in target.changes
            ],
            [
                (each.method, each.changes, each.guarded, each.dest, len(each.effects))
                for each in target.requests
            ],
            [each.path.partition("?")[0] for each in target.requests],
        )
        for target in plan.targets
    ]


@settings(max_examples=examples(200))
@given(plans())
def test_hiding_changes_no_more_than_texts_with_a_secret(plan: Plan) -> None:
    shown, secrets = redact_plan(plan), plan.secrets
    assert shape(shown) == shape(plan)
    assert shown.summary == plan.summary
    for real, other in zip(plan.targets, shown.targets, strict=True):
        for change, hidden in zip(real.changes, other.changes, strict=True):
            check_change(change, hidden, secrets)
        for sent, told in zip(real.requests, other.requests, strict=True):
            check_request(sent, told, secrets)
        around = [] if other.context is None else other.context.items
        for item in around:
            assert not holds(secrets, item.lane, item.title)


def holds(secrets: Secrets, *shown: str) -> bool:
    return any(map(secrets.occurs_in, shown))


def check_change(real: Change, hidden: Change, secrets: Secrets) -> None:
    with_secret = holds(secrets, real.key, *texts(real.before), *texts(real.after))
    assert hidden.secret == with_secret
    if not with_secret:
        assert hidden == real
    assert not holds(secrets, hidden.key, *texts(hidden.before), *texts(hidden.after))


def check_request(sent: Request, told: Request, secrets: Secrets) -> None:
    assert told.secret == holds(secrets, sent.path, body_text(sent))
    if not told.secret:
        assert (told.path, told.body) == (sent.path, sent.body)
    assert not holds(secrets, told.path, body_text(told))
    assert (told.body is None) == (sent.body is None)


def body_text(request: Request) -> str:
    return "" if request.body is None else request.body.content.decode()


@settings(max_examples=examples(40))
@given(plans())
def test_what_holds_no_secret_is_word_for_word_the_same(plan: Plan) -> None:
    none = structs.replace(plan, secrets=Secrets(["in none of them"]))
    for way, real, shown in both(none, redact_plan(none)):
        if not way.endswith(FLAGS):
            assert real == shown, way
    hidden = redact_plan(plan)
    twice = redact_plan(structs.replace(hidden, secrets=plan.secrets))
    assert shape(twice) == shape(plan)
    shown_values = structs.astuple(hidden)[:-1]
    if HIDDEN not in str(shown_values):
        assert twice == hidden
