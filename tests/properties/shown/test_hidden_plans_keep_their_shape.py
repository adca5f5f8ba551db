"""What is shown is what is sent, except for secret texts: redacting a plan changes nothing else of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct, structs

from msauto.model.desired import TaskSource
from msauto.model.plan import Action, Body, Change, Plan, Request, Target
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


@st.composite
def requests(draw: st.DrawFn, count: int) -> Request:
    path = f"/storage/NEWS@EP001?command={draw(st.sampled_from(['SETFIELD', 'X']))}&val={encode(draw(TEXT))}"
    effect = st.builds(Effect, st.just("field"), TEXT, JSON, JSON)
    return Request(
        draw(st.sampled_from(["POST", "PUT", "DELETE", "GET"])),
        path,
        tuple(sorted(draw(st.sets(st.integers(0, count - 1))))) if count else (),
        draw(st.none() | TEXT.map(lambda text: Body.of(text.encode()))),
        tuple(draw(st.lists(effect, max_size=2))),
        guarded=draw(st.booleans()),
    )


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
        for one, hidden in zip(real.changes, other.changes, strict=True):
            holds = any(map(secrets.occurs_in, (one.key, *texts(one.before), *texts(one.after))))
            assert hidden.secret == holds
            assert holds or hidden == one
            assert not any(
                map(secrets.occurs_in, (hidden.key, *texts(hidden.before), *texts(hidden.after)))
            )
        for sent, told in zip(real.requests, other.requests, strict=True):
            assert told.secret or (told.path, told.body) == (sent.path, sent.body)
            assert not secrets.occurs_in(told.path)
            assert told.body is None or not secrets.occurs_in(told.body.content.decode())
            assert (told.body is None) == (sent.body is None)
            assert told.secret == (
                secrets.occurs_in(sent.path)
                or (sent.body is not None and secrets.occurs_in(sent.body.content.decode()))
            )


@settings(max_examples=examples(40))
@given(plans())
def test_what_holds_no_secret_is_word_for_word_the_same(plan: Plan) -> None:
    none = structs.replace(plan, secrets=Secrets(["in none of them"]))
    for way, real, shown in both(none, redact_plan(none)):
        assert real == shown or way.endswith(FLAGS), way
    twice = redact_plan(structs.replace(redact_plan(plan), secrets=plan.secrets))
    assert shape(twice) == shape(plan)
    hidden = redact_plan(plan)
    shown_values = structs.astuple(hidden)[:-1]
    assert HIDDEN in str(shown_values) or twice == redact_plan(plan)
