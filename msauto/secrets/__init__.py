"""Keep secrets out of everything that is shown or kept.

A text is marked with ``!secret`` or ``| secret``. It is sent as it is; everywhere else ``***`` replaces it.

1. :mod:`.sources` reads secrets from files and the keyring, and marks texts: a value that is made with a secret is
   secret as well. (The templates' part of it is :mod:`msauto.playbook.templates.names`.)
2. :mod:`.redaction` has the secret texts of a run (``Secrets``), and redacts them in messages, errors, paths and the
   lines of files that cannot be parsed.
3. :mod:`.redacted_plans` turns a plan, or a result, into the one that may be shown or kept, and lets the ledger
   recognize a secret again without storing it.

The secrets of the servers themselves (passwords) never enter a plan; they are redacted in what a server answers.
"""
