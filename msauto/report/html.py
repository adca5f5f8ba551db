"""Plans and results as one self-contained HTML page, without scripts, images or network access.

Text from outside is made visible, then escaped. The content security policy allows only the style sheet of the page.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterable, Iterator
from html import escape
from itertools import chain

from msauto.model.plan import Change, Plan, Request, Target
from msauto.model.result import Result, TargetResult
from msauto.report import sentences
from msauto.report.result_sentences import NOT_DONE, recap_of, result_lines, result_sentence
from msauto.report.sanitizing import show, visible, visible_lines
from msauto.report.value_texts import SIGNS, ValuePart, change_notes, change_parts, emptied_lists, show_body, show_key
from msauto.secrets.redactor import redact_plan

_STYLE = """
:root{color-scheme:light dark}
body{font:15px/1.5 system-ui,sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.3rem}h2{font-size:1.1rem}h3{font-size:1rem;margin:1.5rem 0 .3rem;overflow-wrap:anywhere}
h3 small{font-weight:normal;opacity:.7}
table{border-collapse:collapse;width:100%}
td{border-top:1px solid #8884;padding:.2rem .6rem .2rem 0;vertical-align:top;overflow-wrap:anywhere}
td:first-child,code,.value{font-family:ui-monospace,monospace}
td:last-child{opacity:.75}
.value{white-space:pre-wrap}
.label{opacity:.7}
.add td:first-child{color:#1a7f37}.change td:first-child{color:#9a6700}.run td:first-child{color:#0a7ea4}
.delete,.error,.difference,.refusal{color:#cf222e}.warning{color:#9a6700}
del{opacity:.7}ins{text-decoration:none;font-weight:600}
""".strip()
_POLICY = (
    f"default-src 'none'; style-src 'sha256-{b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}'; "
    "base-uri 'none'; form-action 'none'"
)


def render_plan(plan: Plan) -> Iterator[str]:
    """Yield a plan as an HTML page: first the sentence, refusals, errors and warnings, then every target."""
    return _page(sentences.plan_sentence(plan), plan, ())


def render_result(result: Result) -> Iterator[str]:
    """Yield the result of a run, and below it the plan that was applied, as an HTML page."""
    not_done = (target for target in result.targets if target.outcome in NOT_DONE)
    lines = (line for target in not_done for line in _target_result(target))
    return _page(result_sentence(result), result.plan, chain(_recap(result), lines))


def _page(sentence: str, plan: Plan, first: Iterable[str]) -> Iterator[str]:
    plan = redact_plan(plan)
    title = _text(sentence)
    head = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">',
        '<meta name="viewport" content="width=device-width">\n<meta name="referrer" content="no-referrer">',
        f"<title>msauto: {title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>",
        f"<h1>{title}</h1>",
    )
    end = f"<p><small>Planned {_text(plan.created)} by msauto {_text(plan.msauto)}</small></p>\n</body>\n</html>"
    return (f"{line}\n" for line in chain(head, first, _plan(plan), (end,)))


def _plan(plan: Plan) -> Iterator[str]:
    yield from _paragraphs("refusal", map(sentences.refusal_sentence, plan.refusals))
    for heading, folder, error in sentences.planning_errors(plan):
        yield _heading(heading, folder)
        yield from _paragraphs("error", [error])
    yield from _paragraphs("warning", plan.warnings)
    for server, targets in sentences.changing_by_server(plan).items():
        yield f"<h2>{escape(show(server))}</h2>"
        for target in targets:
            yield from _target(target)


def _recap(result: Result) -> Iterator[str]:
    yield "<table>"
    for server, counts in recap_of(result).items():
        cells = (escape(show(server)), *(f"{name}={number}" for name, number in counts.items()))
        yield f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
    yield "</table>"


def _target_result(result: TargetResult) -> Iterator[str]:
    yield _heading(sentences.target_heading(result.target), sentences.folder_note(result.target))
    yield f'<p class="error">{result.outcome}</p>\n<ul>'
    yield from (f'<li class="{kind}">{escape(line)}</li>' for kind, line in result_lines(result))
    yield "</ul>"


def _text(text: str) -> str:
    return escape(visible(text))


def _paragraphs(kind: str, texts: Iterable[str]) -> Iterator[str]:
    return (f'<p class="{kind}">{"<br>".join(map(escape, visible_lines(text)))}</p>' for text in texts)


def _heading(heading: str, folder: str) -> str:
    return f"<h3>{escape(heading)}{f' <small>{escape(folder)}</small>' if folder else ''}</h3>"


def _target(target: Target) -> Iterator[str]:
    yield _heading(sentences.target_heading(target), sentences.folder_note(target))
    yield "<table>"
    yield from (_row(change, target) for change in target.changes)
    yield "</table>"
    yield from (f'<p class="error">{escape(line)}</p>' for line in emptied_lists(target))
    if target.requests:
        yield f"<details><summary>{sentences.plural(len(target.requests), 'request')}</summary>\n<ol>"
        yield from map(_request, target.requests)
        yield "</ol>\n</details>"


def _row(change: Change, target: Target) -> str:
    parts = "<br>".join(map(_part, change_parts(change, target)))
    cells = (
        SIGNS[change.action],
        change.aspect,
        escape(show_key(change)),
        parts,
        escape("; ".join(change_notes(change))),
    )
    return f'<tr class="{change.action}">{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'


def _part(part: ValuePart) -> str:
    label = f'<span class="label">{escape(part.label)}</span> ' if part.label else ""
    if part.changes:
        value = f"<del>{escape(part.before or '')}</del> → <ins>{escape(part.after or '')}</ins>"
    else:
        value = escape(part.value)
    return f'{label}<span class="value">{value}</span>'


def _request(request: Request) -> str:
    body = f"<br>{escape(show_body(request.body))}" if request.body else ""
    return f"<li><code>{request.method} {_text(request.path)}</code>{body}</li>"
