"""Data inside an HTML page: JSON that cannot end its script element; deflated and in base64 if it is large."""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64encode
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Final

from msauto.secrets.taint import HIDDEN, TOKEN_PATTERN

_PLAIN_LIMIT: Final = 256 * 1024
"""Characters of JSON up to which the data stays readable in the file."""
_UNSAFE: Final = re.compile("[<>&\u2028\u2029]")


def script_json(value: Any) -> str:
    r"""Return JSON for a script element: without ``<``, ``>`` and ``&``, so that no text looks like markup.

    Tokens of the ledger are redacted here, because nothing can do so later in deflated data.

    >>> script_json("</script>")
    '"\\u003c/script\\u003e"'
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", TOKEN_PATTERN.sub(HIDDEN, text))


def embed_list(items: Iterable[Any]) -> Iterator[str]:
    """Yield a JSON list in a script element with the id ``data``, item by item."""
    pieces = _json_list(items)
    plain, size = [], 0
    for piece in pieces:
        plain.append(piece)
        size += len(piece)
        if size > _PLAIN_LIMIT:
            yield '<script type="application/json" id="data" data-encoding="deflate">'
            yield from _base64(_deflate(chain(plain, pieces)))
            break
    else:
        yield '<script type="application/json" id="data">'
        yield from plain
    yield "</script>\n"


def _json_list(items: Iterable[Any]) -> Iterator[str]:
    separator = "[\n"
    for item in items:
        yield separator + script_json(item)
        separator = ",\n"
    yield "\n]" if separator == ",\n" else "[]"


def _deflate(pieces: Iterable[str]) -> Iterator[bytes]:
    """Yield the pieces in the format of zlib, which browsers call ``deflate``."""
    compressor = zlib.compressobj(9)
    for piece in pieces:
        yield compressor.compress(piece.encode())
    yield compressor.flush()


def _base64(chunks: Iterable[bytes]) -> Iterator[str]:
    """Yield the base64 of all chunks together."""
    left = b""
    for chunk in chunks:
        left += chunk
        whole = len(left) - len(left) % 3
        yield b64encode(left[:whole]).decode()
        left = left[whole:]
    yield b64encode(left).decode()
