"""Our own record, in SQLite: runs, requests before and after they are sent, and what the server does not report."""

from msauto.ledger.ledger import Ledger
from msauto.ledger.locks import LockScope

__all__ = ["Ledger", "LockScope"]
