"""The HTTP side of the simulator: the ASGI application, authentication, ranges, the request log."""
