r"""Which characters a text may hold: the one rule for titles, fields, XMP values, segments, markers, links and folders.

Servers report every text in XML 1.0, which has no way to write most control characters, U+FFFE, U+FFFF and lone
surrogates (XML 1.0, «Characters»). What cannot be reported can never be verified, so it is refused. All else is
written as it is: blanks and tabs at either end, line ends and a byte order mark inside a text are part of it. Line
ends are compared as ``\n``; around XMP values alone blanks do not count, for answers are indented.
"""

from __future__ import annotations

import re
from typing import Final

_UNREPORTABLE: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def unreportable(text: str) -> str | None:
    r"""Return what is wrong with a text that no answer can carry: the first such character and its position.

    >>> unreportable("a\0b")
    'holds U+0000 as character 2, which XML 1.0 cannot carry: no server can report it'
    """
    found = _UNREPORTABLE.search(text)
    if found is None:
        return None
    name = f"U+{ord(found[0]):04X}"
    return f"holds {name} as character {found.start() + 1}, which XML 1.0 cannot carry: no server can report it"
