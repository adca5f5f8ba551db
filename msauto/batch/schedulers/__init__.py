"""What starts a batch: files for systemd, cron, Kubernetes and the Task Scheduler of Windows."""
