"""The plan and its result as Markdown, for a comment on a pull request: one table a target.

All foreign text stands in code: nobody is mentioned, nothing is linked, no table breaks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msauto.model.plan import Change, Plan, Target
from msauto.model.result import Result
from msauto.report.ansi import SIGNS
from msauto.report.result_lines import TOLD, story_of
from msauto.report.sanitizing import show, visible, visible_lines
from msauto.report.sentences import plan_sentence, plural, recap_of, refusal_sentence, result_sentence
from msauto.report.titles import errors_of, folder_of, head_of
from msauto.report.values import ValueWidth, change_notes, change_parts, emptied_words, show_body, show_key
from msauto.secrets.redactor import redact_plan

_SHORT = ValueWidth(200, 80)
_BODY = 200
_LIMIT = 60_000
"""GitHub and others take comments of 65,536 characters at most."""


def render_plan(plan: Plan, *, limit: int | None = _LIMIT) -> str:
    """Write a plan as GitHub-flavoured Markdown.

    What must be seen comes first: the sentence, refusals, errors, warnings. Past ``limit`` characters the targets
    that are left are only counted, and the text says so.
    """
    plan = redact_plan(plan)
    lines = [f"### {plan_sentence(plan)}", ""]
    lines += [f"- **Refused** {code(refusal_sentence(refusal).removeprefix('Refused: '))}" for refusal in plan.refusals]
    lines += [line for head, _, error in errors_of(plan) for line in _error(head, error)]
    lines += [f"- **Warning** {code(' '.join(visible_lines(warning)))}" for warning in plan.warnings]
    text = "".join(f"{line}\n" for line in lines)
    changing = [target for target in plan.targets if target.error is None and target.changes]
    return text + _targets(changing, None if limit is None else limit - len(text))


def render_result(result: Result) -> str:
    """Write what came of a run: the sentence, a table of servers, and every target that is not as wanted."""
    recaps = recap_of(result)
    names = [name for name, _ in recaps[0].counts()] if recaps else []
    lines = [f"### {code(visible(result_sentence(result)))}", ""]
    lines += [f"| server | {' | '.join(names)} |", "|-" * (len(names) + 1) + "|"] if recaps else []
    for recap in recaps:
        numbers = " | ".join(str(number) for _, number in recap.counts())
        lines.append(f"| {code(show(recap.server))} | {numbers} |")
    for target in result.targets:
        if target.outcome in TOLD:
            lines += ["", f"**{code(head_of(target.target))}: {target.outcome}**", ""]
            lines += [f"- {code(words)}" for _, words in story_of(target)]
    return "".join(f"{line}\n" for line in lines)


def code(text: str) -> str:
    """Put visible text in a code span that nothing in it can end, a table's bars included.

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
    """Write every sign of punctuation as an entity: a bar in a code span ends the cell wherever it is escaped."""
    return "".join(sign if sign.isalnum() or sign == " " or ord(sign) > 127 else f"&#{ord(sign)};" for sign in text)


def _targets(targets: list[Target], room: int | None) -> str:
    shown: list[str] = []
    for target in targets:
        block = "".join(f"{line}\n" for line in _target(target))
        if room is not None:
            room -= len(block)
            if room < 0:
                left = plural(len(targets) - len(shown), "further target")
                return "".join([*shown, f"\n**{left} not shown here.** The whole plan: `msauto plan`.\n"])
        shown.append(block)
    return "".join(shown)


def _error(head: str, error: str) -> Iterator[str]:
    yield f"- **Error** {code(head)}"
    yield from (f"  - {code(line.strip())}" for line in visible_lines(error) if line.strip())


def _target(target: Target) -> Iterator[str]:
    folder = folder_of(target)
    yield ""
    yield f"**{code(head_of(target))}**" + (f" {code(folder)}" if folder else "")
    yield ""
    yield "| | aspect | key | change | note |"
    yield "|-|-|-|-|-|"
    yield from (_row(change, target) for change in target.changes)
    yield ""
    yield from (f"**{words}**\n" for words in emptied_words(target))
    if target.requests:
        yield from _requests(target)


def _row(change: Change, target: Target) -> str:
    parts = "<br>".join(code(str(part)) for part in change_parts(change, target, _SHORT))
    notes = "; ".join(change_notes(change)).replace("`exactly`", "exactly")
    key = code(show_key(change)) if change.key else ""
    return f"| `{SIGNS[change.action]}` | {change.aspect} | {key} | {parts} | {notes} |"


def _requests(target: Target) -> Iterator[str]:
    yield f"<details><summary>{plural(len(target.requests), 'request')}</summary>"
    yield ""
    for number, request in enumerate(target.requests, 1):
        body = f" {code(show_body(request.body, _BODY))}" if request.body else ""
        yield f"{number}. {code(f'{request.method} {visible(request.path)}')}{body}"
    yield ""
    yield "</details>"
