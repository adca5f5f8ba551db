"""Download files: resume what broke off, check that a file is complete, and replace it in one step."""
