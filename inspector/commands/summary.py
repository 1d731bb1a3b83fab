"""What is in a trace, how busy each device was, and why it was idle."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from inspector.commands import common

if TYPE_CHECKING:
    from inspector.trace.results import Results
    from inspector.trace.selection import Window
    from inspector.trace.trace import Trace

NAME = "summary"
HELP = "what is in a trace, busy and idle, and the causes of idle time"
RECORDS = (
    "kernels",
    "memcpys",
    "memsets",
    "graphs",
    "host_calls",
    "ranges",
    "counters",
    "iterations",
    "requests",
    "page_events",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    common.add_trace(parser)
    common.add_part(parser)


def run(args: argparse.Namespace) -> int:
    """Print the summary."""
    trace = common.read(args.trace)
    window = common.window_of(args, trace)
    found = summary(trace, common.devices_of(args, trace), window)
    if args.format == "json":
        common.print_json(found)
    else:
        common.print_text(_text(trace, found))
    return 0


def summary(trace: Trace, devices: list[int], window: Window | None = None) -> dict[str, Any]:
    """The object of the contract, `inflight.summary/1`, for those rows of devices."""
    from inspector.analysis.iterations import Iterations
    from inspector.commands.serving import serving

    info = trace.info
    records = {name: trace.records(name) for name in RECORDS}
    if not records["iterations"] and records["ranges"]:
        records["iterations"] = len(trace.index(Iterations))
    return {
        "schema": "inflight.summary/1",
        "trace": {
            "path": info.paths[0] if len(info.paths) == 1 else list(info.paths),
            "kind": info.kind,
            "basis": info.basis,
            "producer": info.producer,
            "schema_version": info.schema_version,
            "duration_ns": info.duration_ns,
            "origin_ns": info.origin_ns,
            "start_epoch_ns": info.start_epoch_ns,
        },
        "records": records,
        "quality": {
            "malformed": len(trace["rejected"]),
            "notes": [
                {"code": note.code, "severity": note.severity, "count": note.count, "text": note.text}
                for note in trace.quality.notes
            ],
        },
        "configuration": _configuration(trace),
        "devices": [_device(trace, device, window) for device in devices],
        "serving": serving(trace, window),
        **({"layers": _layers(trace)} if trace.layers else {}),
        **({"results": [_result(results) for results in trace.results]} if trace.results else {}),
    }


def _result(results: Results) -> dict[str, Any]:
    """What a recipe of nsys has worked out: its tables, with their headings."""
    return {
        "recipe": results.recipe,
        "reports": list(results.reports),
        "tables": [
            {"name": table.name, "rows": len(table), "columns": [column.name for column in table.columns]}
            for table in results.tables
        ],
    }


def _layers(trace: Trace) -> list[dict[str, Any]]:
    """The figures of each engine; null where the files do not tell."""
    from inspector.analysis.layers import LayerTables

    return [
        {
            "engine": of.engine.title,
            "layers": of.figures.layers,
            "launches": of.figures.launches,
            "source_layers": of.figures.sources,
            "source_layers_at_least": of.figures.has_more,
            "reformats": of.figures.reformats,
            "reformat_ns": of.figures.reformat_ns,
            "bytes_modelled": of.figures.bytes,
            "layers_of_unknown_bytes": of.figures.unknown_bytes,
            "inference_ns": of.figures.total_ns,
            "layers_without_time": of.figures.untimed if of.engine.is_timed else None,
            "inferences": of.engine.iterations if of.engine.iterations > 0 else None,
            "precision_of": "ns" if of.figures.total_ns is not None else "layers",
            "by_precision": of.figures.by_precision,
        }
        for of in trace.index(LayerTables).engines
    ]


def _layer_lines(found: dict[str, Any]) -> list[str]:
    from inspector import units

    least = "at least " if found["source_layers_at_least"] else ""
    lines = [
        "",
        f"Engine {found['engine']}",
        f"  {found['layers']:,} layers hold {least}{found['source_layers']:,} of the network",
    ]
    if found["launches"] is not None:
        lines[-1] += f", {found['launches']:,} launch work"
    total, count = found["inference_ns"], found["inferences"]
    if total is None:
        lines.append("  times: unknown, no profile was given")
    else:
        over = f" over {count:,} inferences" if count else ""
        lines.append(f"  one inference: {units.time(total)}, measured by trtexec layer by layer{over}")
    part = f", {units.share(found['reformat_ns'], total)} of the time" if total else ""
    lines.append(f"  reformats: {found['reformats']:,}{part}")
    size, unknown = found["bytes_modelled"], found["layers_of_unknown_bytes"]
    if size is None:
        lines.append("  bytes moved: unknown, no shapes were given")
    else:
        rest = f", and {unknown:,} layers of unknown size" if unknown else ""
        lines.append(f"  bytes moved: {units.size(size)}, modelled{rest}")
    whole = sum(found["by_precision"].values())
    mix = [f"{name} {units.share(part, whole)}" for name, part in found["by_precision"].items()]
    return [*lines, f"  precision, {'of the time' if total is not None else 'of the layers'}: {', '.join(mix)}"]


def _configuration(trace: Trace) -> dict[str, Any]:
    """What is known of how it was set; settings that nobody says are not in it."""
    from inspector.analysis.configured import configured, contradictions, derived
    from inspector.configuration.settings import BY_NAME

    config = trace.info.configuration
    known = configured(trace)
    return {
        "settings": {
            each.name: {
                "value": each.value,
                "unit": BY_NAME[each.name].unit,
                "group": BY_NAME[each.name].group,
                "file": each.file,
                "key": each.key,
                "over": each.over,
            }
            for each in config
        },
        "modelled": {
            name: {"value": found.value, "unit": "bytes", "formula": found.formula, "why": found.why}
            for name, found in derived(config).items()
        },
        "contradictions": contradictions(trace),
        "unknown": list(known.unknown),
        "notes": list(known.notes),
    }


def _device(trace: Trace, device: int, window: Window | None) -> dict[str, Any]:
    from inspector.analysis.busy import busy
    from inspector.analysis.completeness import verdict
    from inspector.analysis.edges import edges
    from inspector.analysis.origins import at_work_meanwhile, by_pause, by_probe
    from inspector.analysis.pipeline import contention_of
    from inspector.analysis.recoverable import recoverable
    from inspector.analysis.rollup import clipped, idle_by_cause

    figures, trust = busy(trace, device, window), verdict(trace, device)
    table, numbers = trace["devices"], trace["devices"]["number"]
    slices, start, end = clipped(trace, device, figures.span)
    around = edges(trace, device)
    worked, waited = contention_of(trace, device, figures.span)
    return {
        "device": int(table["number"][device]),
        "name": trace.names[int(table["name"][device])],
        "span_ns": figures.span_ns,
        "busy_ns": figures.busy_ns,
        "idle_ns": figures.idle_ns,
        "work": figures.work,
        "gaps": figures.gaps,
        "idle_by_cause_ns": idle_by_cause(trace, device, figures.span),
        "recoverable_estimate": [
            {"cause": each.cause, "ns": each.total_ns, "from": each.basis}
            for each in recoverable(trace, device, figures.span)
        ],
        "stage_work_ns": worked,
        "stage_work_without_processor_ns": waited,
        "kernel_busy_ns": figures.kernel_ns,
        "copy_busy_ns": figures.copy_ns,
        "copy_overlap_ns": figures.overlap_ns,
        "communication_ns": figures.communication_ns,
        "communication_hidden_ns": figures.hidden_communication_ns,
        "paused_by_user_ns": int((end - start)[by_pause(trace, slices)].sum()),
        "own_probe_idle_ns": int((end - start)[by_probe(trace, slices)].sum()),
        "at_work_while_waiting_for_a_peer_ns": {
            str(numbers[other]) if other >= 0 else "none": ns
            for other, ns in at_work_meanwhile(trace, slices, start, end)
        },
        "before_first_work_ns": around.before_ns,
        "after_last_work_ns": around.after_ns,
        "paused_at_the_end_ns": around.paused_ns,
        "verdict": {"level": trust.level, "reasons": list(trust.reasons), "advice": list(trust.advice)},
    }


def _beside(device: dict[str, Any]) -> list[str]:
    """What the share alone does not say."""
    from inspector import units

    said = []
    if device["copy_busy_ns"] > device["kernel_busy_ns"]:
        kernels, copies = (units.share(device[key], device["span_ns"]) for key in ("kernel_busy_ns", "copy_busy_ns"))
        said.append(f"mostly copies: {copies} of the time, kernels {kernels}")
    if device["before_first_work_ns"]:
        said.append(f"starts {units.time(device['before_first_work_ns'])} after the host's first record")
    if device["after_last_work_ns"]:
        said.append(f"no work in the last {units.time(device['after_last_work_ns'])} of the trace")
    if device["paused_at_the_end_ns"]:
        said.append(f"paused by the user for {units.time(device['paused_at_the_end_ns'])} of that")
    if device["paused_by_user_ns"]:
        said.append(f"{units.time(device['paused_by_user_ns'])} of the idle time paused by the user")
    if device["own_probe_idle_ns"]:
        said.append(f"{units.time(device['own_probe_idle_ns'])} of the idle time in inflight's own probe")
    return said


def _meanwhile(trace: Trace, rows: dict[int, int], device: dict[str, Any]) -> list[str]:
    """Who was at work while it waited for a peer."""
    from inspector import units

    found = device["at_work_while_waiting_for_a_peer_ns"]
    told = [
        f"{trace.device_short(rows[int(number)]) if number != 'none' else 'no other device'} {units.time(ns)}"
        for number, ns in found.items()
    ]
    return [f"while it waited for a peer, at work: {', '.join(told)}"] if told else []


def _configuration_lines(trace: Trace) -> list[str]:
    from inspector.analysis.configured import configured
    from inspector.configuration.settings import BY_NAME
    from inspector.report.text import table

    known = configured(trace)
    rows = []
    for heading, group in known.groups:
        for at, line in enumerate(group):
            doubt = f" ({line.doubt})" if line.doubt else ""
            rows.append((f"  {heading if not at else ''}", line.title, line.value, f"{line.where}{doubt}"))
    if not rows:
        return []
    lines = ["", table(("Configuration", "", "", "from"), rows, left=(0, 1, 2, 3))]
    if known.unknown:
        lines.append(f"  not said: {', '.join(BY_NAME[name].title for name in known.unknown)}")
    return [*lines, *(f"  {note}" for note in known.notes)]


def _text(trace: Trace, found: dict[str, Any]) -> str:
    from inspector import units
    from inspector.analysis.causes import EXPLANATIONS
    from inspector.commands.serving import serving_lines
    from inspector.report.text import table

    head = found["trace"]
    lines = [
        f"{', '.join(trace.info.paths)}",
        " · ".join(
            (head["kind"], head["producer"] or "unknown producer", units.time(head["duration_ns"]), head["basis"])
        ),
        "",
        "  ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in found["records"].items() if count)
        or "no records",
    ]
    for engine in found.get("layers", ()):
        lines += _layer_lines(engine)
    for result in found.get("results", ()):
        lines += ["", f"Results of nsys recipe {result['recipe']} over {len(result['reports']):,} reports"]
        lines += [f"  {table['name']}: {table['rows']:,} rows" for table in result["tables"]]
    if not found["devices"]:
        lines += [
            "",
            "No device work in this trace.",
            *(f"  {why}" for why in dict.fromkeys(trace.info.missing.values())),
        ]
    rows = {number: row for row, number in enumerate(trace["devices"]["number"].tolist())}
    for device in found["devices"]:
        span, idle = device["span_ns"], device["idle_ns"]
        worked, waited = device["stage_work_ns"], device["stage_work_without_processor_ns"]
        lines += [
            "",
            trace.device_name(rows[device["device"]]),
            f"  busy {units.share(device['busy_ns'], span)} of {units.time(span)}"
            f" · idle {units.time(idle)} in {device['gaps']:,} gaps · {device['work']:,} records of work",
            *(
                [
                    f"  of the target's forward passes {units.share(waited, worked)} without a processor"
                    f" ({units.time(waited)} of {units.time(worked)}): contention"
                ]
                if worked
                else []
            ),
            f"  these figures: {device['verdict']['level']}",
            *(f"    {reason}" for reason in device["verdict"]["reasons"] + device["verdict"]["advice"]),
        ]
        lines += [f"  {words}" for words in [*_beside(device), *_meanwhile(trace, rows, device)]]
        causes = [
            (f"  {cause}", units.time(ns), units.share(ns, idle), EXPLANATIONS[cause])
            for cause, ns in device["idle_by_cause_ns"].items()
        ]
        if causes:
            lines += ["", table(("  idle because of", "time", "of idle", ""), causes, left=(0, 3))]
    lines += serving_lines(found["serving"])
    lines += _configuration_lines(trace)
    notes = found["quality"]["notes"]
    if notes:
        lines += ["", "Notes"]
        lines += [
            f"  {note['severity']}: {note['text']}" + (f" ({note['count']:,})" if note["count"] > 1 else "")
            for note in notes
        ]
    return "\n".join(lines)
