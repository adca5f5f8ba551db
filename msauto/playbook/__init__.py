"""Text to intents, offline: playbooks, inventory, variables and templates. No server is asked anything here."""
