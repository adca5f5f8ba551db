"""Reports: the same plan and result as text, JSON, Markdown and HTML, and progress on a terminal.

Every form is a pure function of model values. Texts of servers and playbooks are foreign: each form makes them
harmless in its own way (:mod:`msauto.report.sanitizing` for what a reader would not see).
"""
