"""Plans and results as Markdown, for a comment on a pull request: one table for each target.

Text from outside is always code, so that it cannot mention users, make links, or break tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msauto.model.plan import Change, Plan, Target
from msauto.model.result import Result
from msauto.report import sentences
from msauto.report.result_sentences import NOT_DONE, recap_of, result_lines, result_sentence
from msauto.report.sanitizing import show, visible, visible_lines
from msauto.report.value_texts import SIGNS, ValueWidth, change_notes, change_parts, emptied_lists, show_body, show_key
from msauto.secrets.redactor import redact_plan

_SHORT = ValueWidth(200, 80)
_BODY = 200
_LIMIT = 60_000
"""GitHub and others limit comments to 65,536 characters."""


def render_plan(plan: Plan, *, limit: int | None = _LIMIT) -> Iterator[str]:
    """Yield a plan as GitHub-flavoured Markdown: the sentence, refusals, errors, warnings, then the targets.

    The targets beyond ``limit`` characters are only counted.
    """
    plan = redact_plan(plan)
    lines = [f"### {sentences.plan_sentence(plan)}", ""]
    lines += [
        f"- **Refused** {code(sentences.refusal_sentence(refusal).removeprefix('Refused: '))}"
        for refusal in plan.refusals
    ]
    lines += [line for heading, _, error in sentences.planning_errors(plan) for line in _error(heading, error)]
    lines += [f"- **Warning** {code(' '.join(visible_lines(warning)))}" for warning in plan.warnings]
    head = "".join(f"{line}\n" for line in lines)
    changing = [target for target in plan.targets if target.changes and target.error is None]
    yield head
    yield from _targets(changing, None if limit is None else limit - len(head))


def render_result(result: Result) -> Iterator[str]:
    """Yield a result: the sentence, a table of servers, and every target that is not as desired."""
    return (f"{line}\n" for line in _result(result))


def _result(result: Result) -> Iterator[str]:
    recaps = recap_of(result)
    names = list(next(iter(recaps.values()), ()))
    yield from (f"### {code(visible(result_sentence(result)))}", "")
    yield from (f"| server | {' | '.join(names)} |", "|-" * (len(names) + 1) + "|") if recaps else ()
    for server, counts in recaps.items():
        yield f"| {code(show(server))} | {' | '.join(map(str, counts.values()))} |"
    for target in result.targets:
        if target.outcome in NOT_DONE:
            yield from ("", f"**{code(sentences.target_heading(target.target))}: {target.outcome}**", "")
            yield from (f"- {code(line)}" for _, line in result_lines(target))


def code(text: str) -> str:
    """Return visible text as a code span that its content cannot end, table bars included.

    >>> code("a `b`"), code("a|b")
    ('``` a `b` ```', '<code>a&#124;b</code>')
    """
    if "|" in text:
        return f"<code>{_entities(text)}</code>"
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 2 if longest else 1)
    padded = f" {text} " if longest or text[:1] == " " or text[-1:] == " " else text
    return f"{fence}{padded}{fence}"


def _entities(text: str) -> str:
    """Return text with punctuation as entities: a bar in a code span ends the table cell even if it is escaped."""
    return "".join(sign if sign.isalnum() or sign == " " or ord(sign) > 127 else f"&#{ord(sign)};" for sign in text)


def _targets(targets: list[Target], room: int | None) -> Iterator[str]:
    for number, target in enumerate(targets):
        block = "".join(f"{line}\n" for line in _target(target))
        if room is not None:
            room -= len(block)
            if room < 0:
                left = sentences.plural(len(targets) - number, "further target")
                yield f"\n**{left} not shown.** For the whole plan: `msauto plan`.\n"
                return
        yield block


def _error(heading: str, error: str) -> Iterator[str]:
    yield f"- **Error** {code(heading)}"
    yield from (f"  - {code(line.strip())}" for line in visible_lines(error) if line.strip())


def _target(target: Target) -> Iterator[str]:
    folder = sentences.folder_note(target)
    yield ""
    yield f"**{code(sentences.target_heading(target))}**" + (f" {code(folder)}" if folder else "")
    yield ""
    yield "| | aspect | key | change | note |"
    yield "|-|-|-|-|-|"
    yield from (_row(change, target) for change in target.changes)
    yield ""
    yield from (f"**{line}**\n" for line in emptied_lists(target))
    if target.requests:
        yield from _requests(target)


def _row(change: Change, target: Target) -> str:
    parts = "<br>".join(code(str(part)) for part in change_parts(change, target, _SHORT))
    notes = "; ".join(change_notes(change)).replace("`exactly`", "exactly")
    key = code(show_key(change)) if change.key else ""
    return f"| `{SIGNS[change.action]}` | {change.aspect} | {key} | {parts} | {notes} |"


def _requests(target: Target) -> Iterator[str]:
    yield f"<details><summary>{sentences.plural(len(target.requests), 'request')}</summary>"
    yield ""
    for number, request in enumerate(target.requests, 1):
        body = f" {code(show_body(request.body, _BODY))}" if request.body else ""
        yield f"{number}. {code(f'{request.method} {visible(request.path)}')}{body}"
    yield ""
    yield "</details>"
