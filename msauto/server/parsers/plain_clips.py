"""Clips in exactly the documented form, read from the bytes of a listing before lxml gets them.

lxml makes an element for each text of a clip, which takes most of the time of a large listing. A plain clip has only
characters that every XML parser reads in the same way: no entity, no prefix, nothing nested, nothing to normalize.
Everything else is left to lxml, which also judges whether the document is well-formed.
"""

from __future__ import annotations

import re
from secrets import token_hex
from typing import Final

from msauto.model.live import whole
from msauto.server.parsers.clip import read_flag
from msauto.server.parsers.compact_entries import EntryPacker, Names, PackedClip, pack_texts

_BLANKS: Final = b" \t\r\n"  # of XML; others are not allowed in it
_SPACE = rb"[ \t\r\n]*+"
_VALUE = rb'"([^"<>&\x00-\x1f]*+)"'
_OWN = rb" ([A-Za-z_][A-Za-z0-9_.-]*+)=" + _VALUE
_ATTR = rb"<Attr name=" + _VALUE + rb"(?:/>|>([^<>&\x00-\x08\x0b-\x1f]*+)</Attr>)"
_CLIP = re.compile(
    rb"<Clip((?:%b){0,200}+)%b(?:/>|>%b((?:%b%b)*+)</Clip>)"
    % (_OWN.replace(b"(", b"(?:"), _SPACE, _SPACE, re.sub(rb"\((?!\?)", b"(?:", _ATTR), _SPACE)
)
_OWN_PARTS = re.compile(_OWN)
_ATTR_PARTS = re.compile(_ATTR)
_NOT_XML = (b"\xef\xbf", b"\xed")
"""How U+FFFE, U+FFFF and surrogates begin in UTF-8, which XML does not allow; and some other characters."""
_NOT_PLAIN = (b"<!", b"<?", b":Clip")
"""A comment or CDATA may hold text that looks like a clip; a clip with a prefix may hold a clip."""
_MOST_HELD: Final = 2**14


class PlainClips:
    """Takes plain clips out of a document, and leaves one empty element for each run of them, the ``mark``.

    Line ends are left, too.
    """

    __slots__ = ("_count", "_depth", "_held", "_is_begun", "_is_off", "_packer", "_runs", "_shapes", "mark")

    def __init__(self, packer: EntryPacker) -> None:
        self.mark = f"clips-{token_hex(8)}"  # a name that no server can know
        self._packer = packer
        self._shapes: dict[tuple[bytes, ...], Names] = {}
        self._runs: dict[str, list[PackedClip]] = {}
        self._count = 0
        self._held = b""
        self._depth = 0
        self._is_begun = False
        self._is_off = False

    def take_run(self, number: str) -> list[PackedClip]:
        """Return the clips of the mark with this number, once."""
        return self._runs.pop(number, [])

    def replace(self, data: bytes, final: bool) -> bytes:
        """Return the next bytes (UTF-8) with marks in place of plain clips. An incomplete tag at their end is held."""
        data = self._held + data
        cut = data.rfind(b"<") if not final else -1
        if cut < 0 or self._is_off or data.find(b">", cut) >= 0:
            cut = len(data)
        data, self._held = data[:cut], data[cut:]
        self._is_off = self._is_off or len(self._held) > _MOST_HELD or any(sign in data for sign in _NOT_PLAIN)
        if self._is_off or any(sign in data for sign in _NOT_XML):
            return self._rest(data)
        start = 0 if self._is_begun else data.find(b">") + 1  # the root is left to lxml
        self._is_begun = True
        return self._rest(data[:start]) + self._with_marks(data[start:])

    def _rest(self, data: bytes) -> bytes:
        """Return bytes without plain clips, and count the clips that are open at their end."""
        self._depth += data.count(b"<Clip") - data.count(b"</Clip")
        return data

    def _with_marks(self, data: bytes) -> bytes:
        pieces: list[bytes] = []
        run: list[PackedClip] | None = None
        done = 0
        has_lines = b"\n" in data
        for match in _CLIP.finditer(data):
            start, between, done = done, data[done : match.start()], match.end()
            if run is None or between.strip(_BLANKS):
                pieces.append(self._rest(between))
                run, start = None, match.start()
            clip = self._pack(match) if not self._depth else None
            if clip is None:
                pieces.append(data[start:done])
                run = None
                continue
            if run is None:
                run = self._new_run(pieces)
            run.append(clip)
            if has_lines:  # errors of lxml name the line
                pieces.append(b"\n" * data.count(b"\n", start, done))
        pieces.append(self._rest(data[done:]))
        return b"".join(pieces)

    def _new_run(self, pieces: list[bytes]) -> list[PackedClip]:
        self._count += 1
        pieces.append(f'<{self.mark} n="{self._count}"/>'.encode())
        run = self._runs[str(self._count)] = []
        return run

    def _pack(self, match: re.Match[bytes]) -> PackedClip | None:
        """Return a plain clip in compact form; ``None`` for names that lxml refuses, or reads in another way."""
        pairs = _OWN_PARTS.findall(match[1])
        own: dict[bytes, bytes] = dict(pairs)
        if len(own) < len(pairs):
            return None
        link, flag = own.pop(b"link_id", b""), own.pop(b"finalized", b"")
        parts = _ATTR_PARTS.findall(match[2] or b"")
        key = (*own, *[name for name, _ in parts])
        names = self._shapes.get(key)
        if names is None:
            if len(set(key)) < len(key) or b"xmlns" in key:
                return None
            names = self._shapes[key] = self._packer.names_of(tuple(name.decode() for name in key))
        texts = (*own.values(), *[text for _, text in parts])
        return names, pack_texts(whole(link.decode()), read_flag(flag.decode()), texts)
