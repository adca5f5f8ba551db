"""Reads the secrets of a saved plan again, by their references, and only where lookups may read."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

from msauto.errors import InputError, Problem, SourceLocation
from msauto.playbook.templates.lookup_context import LookupContext
from msauto.playbook.templates.lookups import lookup_file
from msauto.playbook.templates.secret_tracking import TemplateFunctionError
from msauto.playbook.yaml.loader import load_yaml
from msauto.secrets.secret_sources import SecretReference
from msauto.secrets.tainted_text import TaintedText


def read_secret(context: LookupContext, inventories: tuple[str, ...], source: SecretReference, plan: str) -> str:
    """Return the text of a secret that ``plan`` names; raises :class:`InputError` if it is missing.

    A tagged text may also be in the folders of the inventories, which are given on the command line.
    """
    try:
        if source.kind == "env":
            if source.name not in context.env:
                raise TemplateFunctionError("it is not set", "set it, or make the plan again")
            return context.env[source.name]
        if source.kind == "file":
            return lookup_file(context, source.name)
        folders = (str(Path(path) if Path(path).is_dir() else Path(path).parent) for path in inventories)
        return _tagged(replace(context, opened=(*context.opened, *folders)), source)
    except TemplateFunctionError as error:
        message = f"the plan sends a secret from {source}, which cannot be read: {error}"
        raise InputError([Problem(message, SourceLocation(plan), error.remedy, kind="plan-file")]) from None


def _tagged(context: LookupContext, source: SecretReference) -> str:
    try:
        data: Any = load_yaml(context.read(source.name), source.name).data
        text = reduce(lambda value, part: value[part], source.place, data)
    except (InputError, LookupError, TypeError):  # the message of invalid YAML could show what is in the file
        text = None
    if not isinstance(text, TaintedText):
        raise TemplateFunctionError("text tagged !secret not found", "restore it, or make the plan again")
    return str(text)
