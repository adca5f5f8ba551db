"""A CronJob of Kubernetes."""

from __future__ import annotations

import json

from msauto.batch.schedulers.cron import days_of_week
from msauto.batch.schedulers.scheduled_start import ScheduledStart, SchedulerFiles
from msauto.version import __version__

_WITHOUT_WINDOW = 300  # seconds within which a late start is still on time

_MANIFEST = """\
apiVersion: batch/v1
kind: CronJob
metadata:
  name: {quoted}
  labels: {{app.kubernetes.io/name: msauto, app.kubernetes.io/instance: {quoted}}}
spec:
  schedule: {schedule}
  timeZone: {zone}
  concurrencyPolicy: Forbid
  startingDeadlineSeconds: {deadline}
  jobTemplate:
    spec:
      backoffLimit: 0
{limit}      template:
        spec:
          restartPolicy: Never
          automountServiceAccountToken: false
          terminationGracePeriodSeconds: 600
          securityContext: {{runAsNonRoot: true, runAsUser: 10001, runAsGroup: 10001, fsGroup: 10001}}
          containers:
            - name: msauto
              image: registry.example.org/msauto:{version}  # your image
              command: [msauto, batch, run, {file}]
              workingDir: /automation
              env:
                - {{name: XDG_STATE_HOME, value: /state}}
{credentials_env}              envFrom:
                - secretRef: {{name: msauto-{name}, optional: true}}  # variables that playbooks read with env
              securityContext:
                allowPrivilegeEscalation: false
                readOnlyRootFilesystem: true
                capabilities: {{drop: [ALL]}}
                seccompProfile: {{type: RuntimeDefault}}
              volumeMounts:
                - {{name: automation, mountPath: /automation}}
                - {{name: state, mountPath: /state}}
                - {{name: tmp, mountPath: /tmp}}
{credentials_mount}          volumes:
            - {{name: automation, persistentVolumeClaim: {{claimName: msauto-automation}}}}  # has the batch file
            - {{name: state, persistentVolumeClaim: {{claimName: msauto-state}}}}  # the ledger: keep it
            - {{name: tmp, emptyDir: {{}}}}
{credentials_volume}"""
_FOLDER = "/run/credentials/msauto"


def kubernetes_files(start: ScheduledStart) -> SchedulerFiles:
    """Return the manifest of the CronJob."""
    schedule, name = start.batch.schedule, start.batch.name
    limit, deadline, credentials = start.time_limit(), start.latest_start(), bool(start.credentials())
    secret = f"{{secretName: msauto-{name}-credentials, defaultMode: 288}}"
    text = _MANIFEST.format(
        name=name,
        quoted=json.dumps(name),  # a name such as 123 or true stays a text
        schedule=json.dumps(f"{schedule.at.minute} {schedule.at.hour} * * {days_of_week(schedule.days)}"),
        zone=schedule.timezone,
        deadline=_WITHOUT_WINDOW if deadline is None else int(deadline.total_seconds()),
        limit="" if limit is None else f"      activeDeadlineSeconds: {limit.total_seconds():.0f}\n",
        version=__version__,
        file=json.dumps(f"/automation/{start.file.name}"),
        credentials_env=_if(credentials, 16, f"- {{name: CREDENTIALS_DIRECTORY, value: {_FOLDER}}}"),
        credentials_mount=_if(credentials, 16, f"- {{name: credentials, mountPath: {_FOLDER}, readOnly: true}}"),
        credentials_volume=_if(credentials, 12, f"- {{name: credentials, secret: {secret}}}"),
    )
    file = f"{start.unit}.yaml"
    keys = " ".join(f"--from-file={each}" for each in start.credentials())
    install = [f"kubectl create secret generic msauto-{name}-credentials {keys}"] if credentials else []
    notes = ["Kubernetes leaves out a start in a night in which its time is skipped"]
    notes += ["Kubernetes has no random delay: spread is ignored"] if schedule.spread else []
    return SchedulerFiles({file: text}, (*install, f"kubectl apply -f {file}"), tuple(notes))


def _if(needed: bool, indent: int, line: str) -> str:
    return f"{' ' * indent}{line}\n" if needed else ""
