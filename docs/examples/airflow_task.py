"""A task for Airflow: prepare tonight's news, and fail where somebody must look.

In a DAG::

    PythonOperator(task_id="prepare_news", python_callable=prepare_news, op_kwargs={...}, retries=3)

The function imports nothing of Airflow, so that a test, Prefect or a shell can call it as well.
"""

import logging
from collections.abc import Mapping
from pathlib import Path

import msauto

logger = logging.getLogger(__name__)


def prepare_news(
    playbook: str | Path,
    inventory: str | Path,
    variables: Mapping[str, object] | None = None,
    allow_delete: int = 0,
) -> dict[str, int]:
    """Apply the playbook; return how many targets have each outcome.

    Raises an :class:`msauto.MsautoError` where nothing was sent: ``LockedError`` while another run works, for example,
    or ``RefusedError`` for more than ``allow_delete`` deletions. Raises ``RuntimeError`` where a target is not as
    desired. Each may be tried again: the next run sends only what is missing.
    """
    plan = msauto.plan(msauto.load(playbook, inventory=inventory, extra_vars=variables or {}))
    logger.info("%s", plan.to_text())
    result = msauto.apply(
        plan, allow_delete=allow_delete, observer=lambda event: logger.debug("%s", event)
    )
    if not result.ok:
        raise RuntimeError(result.to_text())
    return {outcome: count for outcome, count in result.counts.items() if count}
