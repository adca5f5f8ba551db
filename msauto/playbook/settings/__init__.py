"""The settings file `msauto.toml`, its freezes, and run windows."""
