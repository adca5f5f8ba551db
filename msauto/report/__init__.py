"""Reports: plans and results as text, JSON, Markdown and HTML, and progress on a terminal.

Every form is a pure function of model values, registered in ``msauto.api.forms``. Texts of servers and playbooks
come from outside: each form makes them harmless (:mod:`msauto.report.sanitizing` for what a reader would not see).
"""
