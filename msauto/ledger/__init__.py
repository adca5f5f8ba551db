"""Our own record: runs, requests before and after they are sent, and what the server does not report."""
