"""The interface on the wire: addresses, requests, answers, and a client that sends what was planned and no more."""
