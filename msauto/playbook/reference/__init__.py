"""The reference of the language, made from the code: for ``msauto doc`` and for ``docs/reference``.

Each entry has an example, whose result is computed. :mod:`.module_docs` documents plays, tasks and modules,
:mod:`.template_docs` what templates can use, and :mod:`.doc_pages` writes both as Markdown.
"""
