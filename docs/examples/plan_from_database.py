"""Plan from a database query: the comments of tonight's clips, as the schedule has them.

``python plan_from_database.py schedule.sqlite http://studio-a:7901`` shows what would change, and changes nothing.
"""

import sqlite3
import sys
from contextlib import closing

import msauto

QUERY = "SELECT title, slot, host FROM schedule WHERE ready = 1 ORDER BY slot"


def plan_schedule(database: str, server: str) -> msauto.Plan:
    """Return the plan for the clips of the schedule."""
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute(QUERY).fetchall()
    task = {
        "name": "Describe what is on air tonight",
        "asset": {
            "title": "{{ item.title }}",
            "fields": {"comment": "{{ item.slot }}", "user_0": "{{ item.host }}"},
        },
        "loop": [{"title": title, "slot": slot, "host": host} for title, slot, host in rows],
    }
    play = {"name": "The schedule", "hosts": "all", "database": "NEWS", "tasks": [task]}
    return msauto.plan(msauto.load([play], server=server))


if __name__ == "__main__":
    try:
        print(plan_schedule(*sys.argv[1:3]).to_text())
    except msauto.MsautoError as error:
        sys.exit(f"Error: {error}")
