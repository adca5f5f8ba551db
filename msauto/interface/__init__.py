"""The documented interface as pure values and functions: vocabulary, addresses, requests, versions."""
