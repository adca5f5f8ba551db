"""Problems of playbooks and inventories, and errors, as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msauto.errors import InputError, MsautoError, Problem, RefusedError
from msauto.report.ansi import BOLD, CYAN, DIM, RED, YELLOW, paint
from msauto.report.sanitizing import display_width, is_hidden, visible_lines
from msauto.report.sentences import plural

_UNSEEN = "�"


def render_problems(problems: Iterable[Problem], colour: bool) -> str:
    """Write each problem: place and message, the excerpt with its caret, the remedy; at the end their number."""
    blocks = ["".join(f"{line}\n" for line in _problem(problem, colour)) for problem in problems]
    if not blocks:
        return ""
    return "\n".join([*blocks, paint(f"{plural(len(blocks), 'problem')}.", BOLD, colour=colour) + "\n"])


def render_error(error: MsautoError, *, colour: bool) -> str:
    """Write any error of ours; :class:`InputError` with all its problems."""
    if isinstance(error, InputError):
        return render_problems(error.problems, colour)
    first, *rest = visible_lines(str(error))
    head = "Refused:" if isinstance(error, RefusedError) else "Error:"
    lines = [f"{paint(head, RED, colour=colour)} {first}", *(f"  {line.strip()}" for line in rest if line.strip())]
    return "".join(f"{line}\n" for line in lines)


def _problem(problem: Problem, colour: bool) -> Iterator[str]:
    first, *rest = visible_lines(problem.message)
    place = " ".join(visible_lines(f"{problem.place}: ")) if problem.place else ""
    if problem.level == "warning":
        yield paint(place, BOLD, colour=colour) + paint(f"warning: {first}", YELLOW, colour=colour)
    else:
        yield paint(place, BOLD, colour=colour) + paint(first, RED, colour=colour)
    yield from (f"  {line}" for line in rest)
    for line in _excerpt(problem.excerpt):
        yield paint(line, CYAN if _is_caret(line) else DIM, colour=colour)
    if problem.remedy:
        yield f"  → {' '.join(visible_lines(problem.remedy))}"


def _excerpt(excerpt: str) -> Iterator[str]:
    """The lines of an excerpt; a caret, placed by counting signs, moves to the column that the reader sees."""
    above = ""
    for line in excerpt.rstrip("\n").split("\n") if excerpt else ():
        shown = _in_columns(line)
        yield _moved(shown, above) if _is_caret(shown) and above else shown
        above = shown


def _moved(caret: str, above: str) -> str:
    at = caret.index("^")
    bar = caret.rfind("|", 0, at) + 1
    return caret[:bar] + " " * (display_width(above[:at]) - bar + max(0, at - len(above))) + caret[at:]


def _is_caret(line: str) -> bool:
    return line.strip(" |~^") == "" and "^" in line


def _in_columns(line: str) -> str:
    """Keep every sign one sign, so that the caret stays under what it points at."""
    return "".join(" " if sign == "\t" else _UNSEEN if is_hidden(sign) else sign for sign in line)
