"""Templates: Jinja2, sandboxed and strict, with filters, tests and lookups."""
