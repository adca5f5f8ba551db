"""The reference of the language, made from the code: for ``msauto doc`` and for ``docs/reference``.

Each entry has an example, whose result is computed.
"""

from msauto.playbook.reference.modules import ReferenceKey, ReferenceTopic, module, modules
from msauto.playbook.reference.pages import PAGES, render_page, render_topic
from msauto.playbook.reference.templating import ReferenceEntry, facts, filters, lookups, positions, tests, variables

__all__ = [
    "PAGES",
    "ReferenceEntry",
    "ReferenceKey",
    "ReferenceTopic",
    "facts",
    "filters",
    "lookups",
    "module",
    "modules",
    "positions",
    "render_page",
    "render_topic",
    "tests",
    "variables",
]
