"""Secrets are taken out of texts in every form; what is cut, coded or squeezed does not slip through."""

from __future__ import annotations

import base64
import html
import json
import re
from urllib.parse import quote, quote_plus, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msauto.errors import InputError, MsautoError, Problem, ServerError, SourceLocation
from msauto.model.requests import encode
from msauto.secrets.redaction import HIDDEN, Secrets, can_redact

TEXTS = st.text(st.characters(codec="utf-8"), min_size=4, max_size=40).filter(can_redact)
AROUND = st.text(st.sampled_from("xyz =/"), max_size=6)


@pytest.mark.parametrize(
    "form",
    [
        lambda text: text,
        lambda text: quote(text),
        lambda text: quote(text, safe=""),
        quote_plus,
        encode,
        lambda text: re.sub(r"%..", lambda sign: sign[0].lower(), quote(text)),
        html.escape,
        lambda text: html.escape(text, quote=False),
        lambda text: json.dumps(text)[1:-1],
        lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
        lambda text: repr(text)[1:-1],
        lambda text: " ".join(text.split()),
        lambda text: base64.b64encode(text.encode()).decode(),
        lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
        lambda text: text.encode().decode("latin-1"),
    ],
)
def test_no_form_is_left(form: object) -> None:
    assert callable(form)
    secret = "geheim \"<&'ü%41/?+\\Wort"
    shown = Secrets([secret]).redact(f"val={form(secret)}&x=1")
    assert shown == f"val={HIDDEN}&x=1"


@given(TEXTS, AROUND, AROUND)
def test_a_secret_never_stays_in_a_text(secret: str, before: str, after: str) -> None:
    assert (
        secret not in Secrets([secret]).redact(before + secret + after).replace(HIDDEN, "")
        or secret in before + after
    )


@given(st.lists(TEXTS, min_size=1, max_size=4), AROUND)
def test_many_secrets_are_found_as_few_are(secrets: list[str], around: str) -> None:
    many = [f"{number:04d}-of-many" for number in range(60)]
    text = around.join(["", *secrets, many[7], ""])
    few = Secrets([*secrets, many[7]])
    assert Secrets([*secrets, *many]).redact(text) == few.redact(text)
    assert Secrets([*secrets, *many]).occurs_in(text)
    assert not Secrets(many).occurs_in(around)


@given(TEXTS)
def test_no_path_holds_one_once_it_is_decoded(secret: str) -> None:
    path = Secrets([secret]).redact_path(f"/storage/NEWS@EP?command=SETFIELD&val={encode(secret)}")
    if secret not in "/storage/NEWS@EP?command=SETFIELD&val=***":
        assert secret not in unquote(path)


def test_of_one_that_holds_another_nothing_is_left() -> None:
    assert (
        Secrets(["tok-1234", "Bearer tok-1234 end"]).redact("<Bearer tok-1234 end> tok-1234")
        == "<***> ***"
    )


def test_of_two_that_overlap_nothing_is_left() -> None:
    assert Secrets(["abcdef", "cdefghij"]).redact("<abcdefghij>") == "<***>"


def test_a_beginning_that_was_cut_is_hidden() -> None:
    known = Secrets(["a-long-secret-text"])
    assert known.redact_message("told: a-long-secr…") == "told: ***…"
    assert known.redact_message("told: a-lon") == "told: a-lon"


def test_each_line_of_a_long_one_is_hidden() -> None:
    assert Secrets(["first line\nsecond line"]).redact("title: second line") == "title: ***"


def test_nothing_of_it_shows_by_itself() -> None:
    known = Secrets(["geheimnis"])
    assert "geheimnis" not in repr(known) + str(known) + repr(Secrets(["geheimnis"]))
    assert known == Secrets(["geheimnis"])
    assert not Secrets(["abc"]).texts


def test_errors_are_cleaned_with_what_caused_them() -> None:
    found = Secrets(["geheimnis"])
    told = InputError(
        [Problem("it is geheimnis", SourceLocation("a"), "not geheimnis", "1 | geheimnis")]
    )
    told.__cause__ = ValueError("geheimnis")
    with pytest.raises(InputError) as caught, found.redacted_errors():
        raise told
    error = caught.value
    assert "geheimnis" not in str(error) + repr(error.args) + str(error.problems)
    assert error.__cause__ is None


def test_the_request_of_an_error_is_cleaned() -> None:
    told = ServerError(
        "it failed", server="studio", request="POST /storage/NEWS@EP001?val=geheim%20nis"
    )
    with pytest.raises(ServerError) as caught, Secrets(["geheim nis"]).redacted_errors():
        raise told
    assert str(caught.value) == "server studio: POST /storage/NEWS@EP001?val=***: it failed"


def test_a_bug_of_ours_shows_none_either() -> None:
    with (
        pytest.raises(MsautoError, match="KeyError") as caught,
        Secrets(["geheimnis"]).redacted_errors(),
    ):
        raise KeyError("geheimnis")
    assert "geheimnis" not in str(caught.value)
    with pytest.raises(KeyError, match="other"), Secrets(["geheimnis"]).redacted_errors():
        raise KeyError("other")


@given(st.lists(TEXTS, min_size=1, max_size=8), AROUND)
def test_secrets_found_one_by_one_are_hidden_as_those_known_at_once(
    secrets: list[str], around: str
) -> None:
    """A secret made with each asset's title comes up late: what is known is not made again for each."""
    found = Secrets(f"{number:04d}-of-many" for number in range(30))
    for secret in secrets:
        found.add(secret)
        assert found.texts >= {secret}
    text = around.join(["", *secrets, "0007-of-many", ""])
    once = Secrets(found.texts)
    assert found == once
    assert found.redact(text) == once.redact(text)
    assert found.redact_message(text) == once.redact_message(text)
