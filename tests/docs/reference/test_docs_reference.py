"""The reference is complete: what the code knows has its place, and what it does not know has none."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields
from typing import get_args, get_type_hints

import click
import pytest
from pydantic import BaseModel, RootModel

import msauto
from msauto.cli.main import group
from msauto.errors import ProblemKind
from msauto.model import facts
from msauto.model.fields import ATTRIBUTE_OF_CLIP, SEGMENT_NAMES, TRACKS, MimeType
from msauto.model.requests import Format
from msauto.model.server import Dialect
from msauto.planning.saved_plan import plan_schema
from msauto.playbook.schema import inventory as schema_inventory
from msauto.playbook.schema import settings as schema_settings
from msauto.playbook.templates.filters import FILTERS, TESTS
from msauto.playbook.variables import GIVEN
from msauto.plugins.batch import schema as schema_batch
from msauto.plugins.simulator.embedded.commands import COMMANDS as ASSET_COMMANDS
from msauto.plugins.simulator.embedded.faults import CHANGES, KINDS
from msauto.plugins.simulator.simulate import command as simulate
from tests.docs.make_reference import MADE_PARTS, flags_table, with_made_parts
from tests.docs.pages import ROOT
from tests.docs.reference.error_index import MEANINGS, output_of

REFERENCE = ROOT / "docs" / "reference"
SECTIONS = {  # where the keys of each model are described
    schema_inventory.GroupArgs: "inventory.md#Inventory",
    schema_inventory.HostArgs: "inventory.md#Inventory",
    schema_inventory.ServerArgs: "inventory.md#The server block",
    schema_inventory.AuthArgs: "inventory.md#The server block",
    schema_inventory.BasicArgs: "inventory.md#The server block",
    schema_inventory.TlsArgs: "inventory.md#The server block",
    schema_inventory.TimeoutArgs: "inventory.md#The server block",
    schema_inventory.DialectArgs: "dialect.md#Keys",
    schema_settings.SettingsArgs: "settings.md#Settings: msauto.toml",
    schema_settings.LimitArgs: "settings.md#Settings: msauto.toml",
    schema_settings.PlanArgs: "settings.md#Settings: msauto.toml",
    schema_settings.LookupArgs: "settings.md#Settings: msauto.toml",
    schema_settings.SecretArgs: "settings.md#Settings: msauto.toml",
    schema_settings.DownloadArgs: "settings.md#Settings: msauto.toml",
    schema_settings.FreezeArgs: "settings.md#Freezes",
    schema_settings.DatedFreezeArgs: "settings.md#Freezes",
    schema_batch.BatchFileArgs: "batch.md#The whole file",
    schema_batch.ScheduleArgs: "batch.md#Schedule",
    schema_batch.WindowArgs: "batch.md#Window",
    schema_batch.JobArgs: "batch.md#Jobs",
    schema_batch.DefaultArgs: "batch.md#Keys of jobs and defaults",
    schema_batch.RetryArgs: "batch.md#Keys of jobs and defaults",
    schema_batch.AllowArgs: "batch.md#Keys of jobs and defaults",
    schema_batch.DriftArgs: "batch.md#Keys of jobs and defaults",
    schema_batch.ReportArgs: "batch.md#Monitoring",
    schema_batch.PagesArgs: "batch.md#Monitoring",
    schema_batch.MetricsArgs: "batch.md#Monitoring",
    schema_batch.NotifyArgs: "batch.md#Monitoring",
    schema_batch.SecretSource: "batch.md#Secrets",
    schema_settings.RolesArgs: "settings.md#Settings: msauto.toml",
    schema_settings.StateArgs: "settings.md#Settings: msauto.toml",
}
SHARED = {
    schema_batch.JobKeys,
    schema_inventory.ServerKeys,
}  # what others inherit, described with them. The models of playbooks are in modules.md, which is made from them


def page(name: str) -> str:
    return without_examples((REFERENCE / name).read_text(encoding="utf-8"))


def without_examples(text: str) -> str:
    return re.sub(r"(?ms)^```.*?^```$", "", text)


def section(place: str) -> str:
    """Return a section with those below it; ``playbook.md#asset``."""
    name, _, heading = place.partition("#")
    text = page(name)
    found = re.search(rf"^(#+) {re.escape(heading)}$", text, re.MULTILINE)
    assert found, f"{name} has no heading {heading!r}"
    rest = text[found.end() :]
    following = re.search(rf"^#{{1,{len(found[1])}}} ", rest, re.MULTILINE)
    return rest[: following.start()] if following else rest


def names(text: str) -> set[str]:
    """Return the words in code marks or in headings, outside of examples."""
    code = re.findall(r"`([^`\n]+)`|^#+ (.+)$", without_examples(text), re.MULTILINE)
    return {word for parts in code for part in parts for word in re.findall(r"[\w-]+", part)}


def models() -> Iterator[type[BaseModel]]:
    for module in (schema_inventory, schema_settings, schema_batch):
        for model in vars(module).values():
            if (
                inspect.isclass(model)
                and issubclass(model, BaseModel)
                and model.__module__ == module.__name__
            ):
                yield model


def test_every_model_of_outside_text_has_its_section() -> None:
    missing = (
        {model for model in models() if not issubclass(model, RootModel)} - SECTIONS.keys() - SHARED
    )
    assert not missing


@pytest.mark.parametrize("model", SECTIONS, ids=lambda model: model.__name__)
def test_every_key_is_described_in_its_section(model: type[BaseModel]) -> None:
    known = names(section(SECTIONS[model]))
    keys = {field.alias or name for name, field in model.model_fields.items()}
    assert not keys - known, "these keys have no place"


@pytest.mark.parametrize("name", MADE_PARTS)
def test_what_is_made_from_the_code_is_fresh(name: str) -> None:
    kept = (REFERENCE / name).read_text(encoding="utf-8")
    assert kept == with_made_parts(name, kept), "make it again: python -m tests.docs.make_reference"


def test_the_first_value_of_a_dialect_key_is_the_default() -> None:
    hints = get_type_hints(Dialect)
    assert all(get_args(hints[key.name])[:1] in {(), (key.default,)} for key in fields(Dialect))


@pytest.mark.parametrize("kind", get_args(ProblemKind))
def test_every_kind_of_problem_has_an_example(kind: ProblemKind) -> None:
    output = output_of(kind)
    assert output.partition("\n")[0].endswith(f" [{kind}]")
    entry = f"\n## {kind}\n\n{MEANINGS[kind]}\n\n```text\n{output.rstrip()}\n```\n"
    assert entry in (REFERENCE / "errors.md").read_text(encoding="utf-8")


def test_everything_that_templates_know_is_described() -> None:
    known = (
        names(section("playbook.md#Templates"))
        | names(page("filters.md"))
        | names(page("facts.md"))
    )
    missing = {*FILTERS, *TESTS, *GIVEN} - known
    assert not missing


def test_every_fact_is_described() -> None:
    known = names(page("facts.md")) | names(section("playbook.md#Facts"))
    typed = {
        name for name, each in ATTRIBUTE_OF_CLIP.items() if each.kind not in {"text", "decimal"}
    }
    assert not {*typed, *facts._ROOT, "fps", "duration", "markers", "segments", "xmp"} - known


def test_the_keys_of_the_plan_that_are_described_exist() -> None:
    schema = plan_schema()
    shapes = [schema, *schema.get("$defs", {}).values()]
    keys = {key for shape in shapes for key in shape.get("properties", {})}
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", section("json.md#Plan"), re.MULTILINE)
    told = {key for row in rows for key in re.findall(r"`(\w+)`", row)}
    assert len(told) > 30
    assert not told - keys
    assert {
        "format",
        "inputs",
        "refusals",
        "targets",
        "fingerprint",
        "requests",
        "basis",
        "reversible",
    } <= told


def test_the_page_of_the_interface_has_each_command_and_value() -> None:
    commands = section("interface.md#Commands")
    assert re.findall(r"^\| ([A-Z_]+) \|", commands, re.MULTILINE) == [*ASSET_COMMANDS]
    assert not [track for track in TRACKS if f"*{track}*" not in " ".join(commands.split())]
    dialect = {key.name for key in fields(Dialect)}
    assert not {*dialect, *get_args(MimeType), *get_args(Format), *SEGMENT_NAMES} - names(
        page("interface.md")
    )


# Commands ---------------------------------------------------------------------------------------------------------

COMMANDS = {*group.list_commands(click.Context(group))}


def commands(name: str) -> list[click.Command]:
    command = group.get_command(click.Context(group), name)
    assert command is not None
    return [*command.commands.values()] if isinstance(command, click.Group) else [command]


def test_the_commands_described_are_the_commands_that_there_are() -> None:
    assert set(re.findall(r"^## msauto (\w+)$", page("commands.md"), re.MULTILINE)) == COMMANDS


def test_every_command_with_flags_of_its_own_has_their_table() -> None:
    made = set(re.findall(r"<!-- flags: ([a-z ]+) -->", page("commands.md")))
    for name in COMMANDS - {"undo"}:  # its flags are those of apply
        for command in commands(name):
            words = name if command.name in {name, None} else f"{name} {command.name}"
            assert flags_table(words).count("\n") == 2 or {name, words} & made, words


def test_every_show_command_has_its_row() -> None:
    for sub in commands("show"):
        assert f"`msauto show {sub.name}" in section("commands.md#msauto show")


def test_every_exit_code_of_the_contract_has_its_row() -> None:
    rows = re.findall(r"^\| (\d+) \|", section("commands.md#Exit codes"), re.MULTILINE)
    assert rows == ["0", "1", "2", "3", "4", "5", "130"]


# The library ------------------------------------------------------------------------------------------------------


def test_every_public_error_is_told() -> None:
    text = (ROOT / "docs" / "how-to" / "use-the-client.md").read_text(encoding="utf-8")
    errors = {name for name in msauto.__all__ if name.endswith("Error")} - {"ServerError"}
    assert errors >= {"NotSentError", "InDoubtError", "RejectedError"}
    missing = errors - names(text)
    assert not missing


def test_every_kind_of_fault_is_told() -> None:
    text = (ROOT / "docs" / "how-to" / "test-your-playbooks.md").read_text(encoding="utf-8")
    assert not set(KINDS) - names(text)


def test_every_change_of_a_simulated_user_is_told() -> None:
    text = (ROOT / "docs" / "how-to" / "test-your-playbooks.md").read_text(encoding="utf-8")
    page_of_help = simulate.epilog or ""
    missing = [
        form
        for form in (f"{name}:{texts}" for name, texts in CHANGES.items())
        if f"| `{form}` |" not in text or form not in page_of_help
    ]
    assert not missing
