"""Keep secrets out of everything that is shown or kept.

A text is marked with ``!secret`` or ``| secret``. It is sent as it is; everywhere else ``***`` replaces it.

1. :mod:`.marked_text` carries the mark through data: a value that is made with a secret is secret as well. (The
   templates' part of it is :mod:`msauto.playbook.templates.secret_tracking`.)
2. :mod:`.redaction` has the secret texts of a run (``Secrets``), and redacts them in messages, errors and paths.
3. :mod:`.redactor` turns a plan, or a result, into the one that may be shown or kept.
4. :mod:`.remembered_secrets` lets the ledger recognize a secret again without storing it.
5. :mod:`.secret_names` lists the names that hold secrets. :mod:`.redacted_lines` uses it for excerpts of files that
   cannot be parsed.

The secrets of the servers themselves (passwords) never enter a plan; they are redacted in what a server answers.
"""
