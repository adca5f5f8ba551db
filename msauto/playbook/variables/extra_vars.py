"""``-e``: ``k=v``, ``@file``, or a mapping as YAML or JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msauto.errors import SourceLocation
from msauto.playbook.input_files import Files
from msauto.playbook.variables.variables import Level, Variable, read_variables
from msauto.playbook.yaml.document import Document, Problems, SourceNode
from msauto.playbook.yaml.loader import load_yaml
from msauto.secrets.tainted_text import TAG

_NAME = re.compile(r"\s*(\w+)=")
_PAIR = re.compile(r"\s*([^\s=]+)=('[^']*'|\"[^\"]*\"|(?:(?!\s+\w+=).)*)", re.DOTALL)


def read_extra(texts: Sequence[str], files: Files, flaws: Problems | None = None) -> list[Variable]:
    """Return the variables of all ``-e``, the weakest first; raises :class:`InputError`."""
    problems = Problems()
    found: list[Variable] = []
    for text in texts:
        with problems.gather():
            found += _read(text, files, flaws)
    problems.check()
    return found


def _read(text: str, files: Files, flaws: Problems | None) -> list[Variable]:
    if text.startswith("@"):
        document = files.document(text[1:], flaws)
        return read_variables(document.data or {}, Level.EXTRA, SourceNode(document))
    if _NAME.match(text):
        data = dict(_pairs(text))
        node = SourceNode(Document("-e", data, {(): SourceLocation("-e", 1, 1)}))
        for name, value in data.items():
            if value.startswith(TAG):
                remedy = f"-e @FILE, with a line `{name}: {TAG} ...` in the file"
                raise node.error(f"the value of {name} is text here, so {TAG} would be part of it, and shown", remedy)
        return read_variables(data, Level.EXTRA, node)
    document = load_yaml(text.encode("utf-8", "surrogateescape"), "-e")
    files.taint.add_tagged(document.data)
    node = SourceNode(document)
    if not isinstance(document.data, dict):
        raise node.error("-e needs name=value, @file or a mapping", "-e episode=News")
    return read_variables(document.data, Level.EXTRA, node)


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """Yield ``k=v`` pairs; as in Ansible, values are text, and quotes may contain spaces."""
    for match in _PAIR.finditer(text):
        value = match[2]
        quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
        yield match[1], value[1:-1] if quoted else value
