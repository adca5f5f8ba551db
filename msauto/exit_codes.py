"""The exit codes (commands, «Exit codes»): the command line ends with them, and the history records them."""

OK = 0
ERROR = 1
"""Nothing was written."""
CHANGES = 2
"""``plan --detailed-exitcode`` found changes."""
INCOMPLETE = 3
"""``apply`` ended with something failed, unverified or not as desired."""
REFUSED = 4
"""The user must decide."""
LOCKED = 5
"""Another run holds the lock."""
INTERRUPTED = 130
