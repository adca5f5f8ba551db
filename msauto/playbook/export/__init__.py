"""Live state to playbooks."""
