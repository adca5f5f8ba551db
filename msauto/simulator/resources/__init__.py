"""The resources of the simulator: databases, folders, clips, channels, thumbnails, proxies."""
