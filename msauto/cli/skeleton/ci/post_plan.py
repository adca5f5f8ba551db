"""Post the plan as a comment on the pull request (GitHub) or merge request (GitLab): `post_plan.py plan.md NAME`.

The comment of the last run is replaced, so that "No changes" also replaces an old plan. It is found by the hidden
marker of `msauto plan --format markdown`, which has the NAME of the playbook without its ending, and only among the
comments of this CI user. If there is no plan, because planning failed before it could print one, the comment reports
that. Only the standard library is needed.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

FAILED = "### ⛔ No plan could be made. The log of the job shows the reason.\n"
PAGE = 100


class Forge(NamedTuple):
    """Where comments are read and created, the URL of one of them, how it is changed, and what every request needs."""

    comments: str
    comment: str
    update: str
    headers: dict[str, str]
    me: Any = None


def forge() -> Forge:
    """Return the API of the CI that this runs in."""
    env = os.environ
    if "GITHUB_API_URL" in env:
        repository = f"{env['GITHUB_API_URL']}/repos/{env['GITHUB_REPOSITORY']}"
        headers = {
            "Authorization": f"Bearer {env['GITHUB_TOKEN']}",
            "Accept": "application/vnd.github+json",
        }
        issue = f"{repository}/issues/{env['PULL_REQUEST']}/comments"
        return Forge(issue, f"{repository}/issues/comments/{{}}", "PATCH", headers)
    project = f"{env['CI_API_V4_URL']}/projects/{env['CI_PROJECT_ID']}"
    notes = f"{project}/merge_requests/{env['CI_MERGE_REQUEST_IID']}/notes"
    headers = {"PRIVATE-TOKEN": env["MSAUTO_TOKEN"]}
    me = call("GET", f"{env['CI_API_V4_URL']}/user", headers)["id"]
    return Forge(notes, f"{notes}/{{}}", "PUT", headers, me)


def call(method: str, url: str, headers: dict[str, str], body: str | None = None) -> Any:
    """Send a request and return the JSON of its answer."""
    data = None if body is None else json.dumps({"body": body}).encode()
    headers = {**headers, "Content-Type": "application/json"}
    with urllib.request.urlopen(
        urllib.request.Request(url, data, headers, method=method), timeout=60
    ) as answer:
        return json.load(answer)


def comments(api: Forge) -> Iterator[dict[str, Any]]:
    """Yield all comments, page by page."""
    page = 1
    while True:
        found = call("GET", f"{api.comments}?per_page={PAGE}&page={page}", api.headers)
        yield from found
        if len(found) < PAGE:
            return
        page += 1


def is_ours(comment: dict[str, Any], api: Forge) -> bool:
    """Return whether this CI user wrote a comment: on GitHub a bot, on GitLab the user of the token."""
    if api.me is not None:
        return bool(comment["author"]["id"] == api.me)
    return bool(comment["user"]["type"] == "Bot")


def main(file: str, name: str) -> None:
    """Create the comment, or change it if its text differs."""
    path = Path(file)
    # As in the plan, so that it cannot end the comment.
    name = name.replace(">", "%3E").replace("##", "#%23")
    marker = f"<!-- msauto:plan:{name} v1 "
    body = f"{marker}failed -->\n{FAILED}"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if text.startswith(marker):
        body = text
    api = forge()
    for comment in comments(api):
        if comment["body"].startswith(marker) and is_ours(comment, api):
            if comment["body"].strip() != body.strip():
                call(api.update, api.comment.format(comment["id"]), api.headers, body)
            return
    call("POST", api.comments, api.headers, body)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
