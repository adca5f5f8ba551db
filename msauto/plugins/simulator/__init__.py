"""The embedded media server, and what works on it: simulate, demo, rehearse and the pytest fixture."""
