"""The documented interface as pure values and functions: fields, addresses, requests, versions."""
