"""Plain technical English: words to avoid (``words.toml``), long sentences and doubled words are findings."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.lint.prose import Passage, passages, sentences
from tests.lint.source import Finding, Source

SENTENCE_WORDS = 32
"""The longest sentence, in words. The target is 26."""

Words = Mapping[str, Mapping[str, str]]
"""``everywhere`` and ``messages`` → pattern of what to avoid → what to use."""
WORDS: Words = tomllib.loads((Path(__file__).parent / "words.toml").read_text(encoding="utf-8"))

_DOUBLED = re.compile(r"\b([a-z]{2,})\s+\1\b(?!-)", re.IGNORECASE)


def check(sources: Sequence[Source], words: Words = WORDS) -> Iterator[Finding]:
    patterns = {
        scope: [(_compiled(key), use) for key, use in words[scope].items()] for scope in words
    }
    for source in sources:
        for passage in passages(source):
            chosen = patterns["everywhere"] + (patterns["messages"] if passage.is_message else [])
            for rule, position, message in [
                *_words(passage, chosen),
                *_sentences(passage),
                *_doubled(passage),
            ]:
                yield Finding(source.path, passage.line_at(position), rule, message)


def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern of ``words.toml``: whole words of any case, and a blank is also a line end."""
    return re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])".replace(" ", r"\s"), re.IGNORECASE)


def _words(
    passage: Passage, patterns: list[tuple[re.Pattern[str], str]]
) -> Iterator[tuple[str, int, str]]:
    for pattern, use in patterns:
        for found in pattern.finditer(passage.text):
            yield "word", found.start(), f"avoid {_shown(found[0])} → {use}"


def _sentences(passage: Passage) -> Iterator[tuple[str, int, str]]:
    for position, sentence in sentences(passage):
        count = sum(
            any(sign.isalnum() or sign == "_" for sign in word) for word in sentence.split()
        )
        if count > SENTENCE_WORDS:
            message = f"the sentence has {count} words, more than {SENTENCE_WORDS}: {_shown(sentence[:40])}"
            yield "sentence", position, message


def _doubled(passage: Passage) -> Iterator[tuple[str, int, str]]:
    for found in _DOUBLED.finditer(passage.text):
        yield "doubled word", found.start(), f"doubled word {_shown(found[0])}"


def _shown(text: str) -> str:
    return repr(" ".join(text.split()))
