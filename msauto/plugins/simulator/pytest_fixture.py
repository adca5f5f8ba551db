"""The pytest fixture ``media_server``: an embedded media server whose content a test declares in YAML.

pytest loads this module in each run where msauto is installed, so it imports the rest only when a test needs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from msauto.errors import MsautoError

if TYPE_CHECKING:
    from msauto.plugins.simulator.embedded import Simulator

_MARKER = "media_server(content, dialect={}, faults=[]): what the fixture media_server holds, and how it answers"


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker of the fixture."""
    config.addinivalue_line("markers", _MARKER)


@pytest.fixture
def media_server(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Simulator]:
    """An embedded media server on a port of its own; ``url`` is its address, ``state`` its content.

    ``@pytest.mark.media_server("studio.yml")`` names its content: a YAML file, relative to the file of the test, or the
    same as data; without the marker it is that of ``msauto simulate``. ``dialect`` and ``faults`` are those of
    :class:`msauto.plugins.simulator.embedded.Simulator`. The ledger of the test's runs is a folder of its own.
    """
    marker = request.node.get_closest_marker("media_server")
    args, options = (marker.args, marker.kwargs) if marker else ((), {})
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    try:
        server = _server(request.path.parent, *args, **options)
    except (OSError, TypeError, ValueError, MsautoError) as error:
        pytest.fail(f"the marker media_server: {error}", pytrace=False)
    with server:
        yield server


def _server(
    folder: Path, content: object = None, *, dialect: Mapping[str, str] = {}, **options: Any
) -> Simulator:
    from msauto.plugins.simulator.content import load_content
    from msauto.plugins.simulator.embedded import Simulator, sample_state
    from msauto.plugins.simulator.embedded.seed import state_from_content

    if isinstance(content, str | Path):
        state = load_content(folder / content)
    else:
        state = sample_state() if content is None else state_from_content(content)
    return Simulator(state, [f"{key}={value}" for key, value in dialect.items()], **options)
