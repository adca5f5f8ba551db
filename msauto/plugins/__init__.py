"""What msauto has beside its kernel: one folder for each plugin, and the table of what they bring.

A plugin may use the kernel, and nothing of another plugin but the embedded server. The kernel imports none of them: it
asks :mod:`msauto.sockets` for a name. ``docs/how-to/write-a-plugin.md`` makes one from nothing.
"""

from typing import Final

from msauto.sockets import Plugin, PluginCommand

_NIGHT: Final = "Every night"
_TRY: Final = "Try and learn"
_TIMELINE_FORM: Final = "msauto.plugins.timelines.export:TimelineForm"

PLUGINS: Final = (
    Plugin(
        "simulator",
        commands={
            "rehearse": PluginCommand(
                "msauto.plugins.simulator.rehearse:command",
                "Plan and apply",
                "Apply to an embedded copy of the servers.",
            ),
            "demo": PluginCommand(
                "msauto.plugins.simulator.demo:command",
                _TRY,
                "Show a complete example in a scratch folder.",
            ),
            "simulate": PluginCommand(
                "msauto.plugins.simulator.simulate:command",
                _TRY,
                "Run a media server to try playbooks on.",
            ),
        },
        functions={
            "rehearse": "msauto.plugins.simulator.rehearsal:rehearse",
            "export_content": "msauto.plugins.simulator.content:ContentExport",
        },
    ),
    Plugin(
        "batch",
        commands={
            "batch": PluginCommand(
                "msauto.plugins.batch.batch_command:command",
                _NIGHT,
                "Run and check scheduled jobs.",
            ),
            "schedule": PluginCommand(
                "msauto.plugins.batch.schedule_command:command",
                _NIGHT,
                "Print what starts a batch.",
            ),
        },
        schemas={"batch-result": "msauto.plugins.batch.batch_result:batch_result_schema"},
        file_models={"batch": "msauto.plugins.batch.schema:BatchFileArgs"},
        records={"batch": "msauto.plugins.batch.past_batches"},
    ),
    Plugin(
        "timelines",
        timeline_formats=dict.fromkeys(("edl", "otio", "csv", "vtt"), _TIMELINE_FORM),
        lookups={"timeline": "msauto.plugins.timelines.lookup:lookup_timeline"},
    ),
    Plugin(
        "probe",
        commands={
            "probe": PluginCommand(
                "msauto.plugins.probe.command:command",
                "Set up",
                "Learn the dialect of a server.",
            ),
        },
    ),
    Plugin(
        "pages",
        report_forms={"html": "msauto.plugins.pages.html"},
        functions={"fetch_stills": "msauto.plugins.pages.stills:fetch_stills"},
    ),
    Plugin(
        "dask", workplaces=dict.fromkeys(("dask", "tls"), "msauto.plugins.dask.workplace:OnWorkers")
    ),
    Plugin(
        "postgres",
        stores=dict.fromkeys(
            ("postgresql", "postgres"), "msauto.plugins.postgres.advisory_locks:open_shared"
        ),
    ),
)
"""Our plugins. Nothing of them is imported here."""
