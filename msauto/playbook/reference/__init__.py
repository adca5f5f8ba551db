"""The reference of the language, made from the code: for ``msauto doc`` and for ``docs/reference``.

Each entry has an example, whose result is computed. :mod:`.modules` documents plays, tasks and modules,
:mod:`.templating` what templates can use, and :mod:`.pages` writes both as Markdown.
"""
