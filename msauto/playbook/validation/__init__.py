"""``msauto validate``: what is wrong with playbooks and inventories, as far as it can be known without a server."""
