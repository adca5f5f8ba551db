"""Plans and results as one self-contained HTML page: no library, no network access, static text first.

What matters is static HTML and needs no script: the sentence, refusals, errors, deletions, counts, groups, results.
A list of all targets with search, filters and timelines is drawn by the scripts of the page from embedded data.
"""

from msauto.report.html.page import render_plan, render_result
from msauto.report.html.stills import Stills

__all__ = ["Stills", "render_plan", "render_result"]
