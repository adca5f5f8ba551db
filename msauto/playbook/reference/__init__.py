"""The reference of the language, made from the code that does it: for ``msauto doc`` and for ``docs/reference``.

Every entry has an example; what it gives is computed, never written down, and a test holds the pages to it.
"""

from msauto.playbook.reference.entries import ReferenceEntry, ReferenceKey, ReferenceTopic
from msauto.playbook.reference.modules import module, modules
from msauto.playbook.reference.pages import PAGES, render_page, render_topic
from msauto.playbook.reference.templating import facts, filters, lookups, questions, variables

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
    "questions",
    "render_page",
    "render_topic",
    "variables",
]
