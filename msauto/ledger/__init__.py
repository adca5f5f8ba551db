"""Our own record: runs, requests before and after they are sent, and what the server does not report."""

from msauto.ledger.ledger import Ledger, LedgerPlace
from msauto.ledger.locks import LockScope

__all__ = ["Ledger", "LedgerPlace", "LockScope"]
