"""Learn a server's dialect, by reading alone or by trials on a scratch asset."""
