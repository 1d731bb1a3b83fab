"""What can be captured on this machine, what is missing, and how to get it."""

from __future__ import annotations

import argparse
from pathlib import Path

from inspector.commands import common

NAME = "doctor"
HELP = "what can be opened and captured here, what is missing, and how to get it"
RECIPES = Path(__file__).resolve().parent.parent / "recipes"
_USE = 'NSYS_RECIPE_PATH="$(inflight doctor --recipes)" nsys recipe inflight_gaps --input FOLDER'
_SIGNS = {"yes": "ok", "partly": "partly", "no": "missing"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--format", choices=("text", "json"), default="text", help="what to print (default: text)")
    parser.add_argument(
        "--recipes", action="store_true", help="only print the folder of recipes for nsys: NSYS_RECIPE_PATH is to be it"
    )


def run(args: argparse.Namespace) -> int:
    """Print the checks."""
    if args.recipes:
        common.print_text(str(RECIPES))
        return 0
    from dataclasses import asdict

    from inspector.report.text import table
    from probes.doctor import checks

    found = checks()
    if args.format == "json":
        common.print_json({"schema": "inflight.doctor/1", "checks": [asdict(check) for check in found]})
        return 0
    rows = [(check.what, _SIGNS[check.state], check.why) for check in found]
    common.print_text(table(("", "", ""), rows, left=(0, 1, 2)).lstrip("\n"))
    fixes = [f"  {check.what}: {check.fix}" for check in found if check.fix]
    if fixes:
        common.print_text("\nTo get more:\n" + "\n".join(fixes))
    still = [f"  {check.what}: {check.still}" for check in found if check.still]
    if still:
        common.print_text("\nWhat works all the same:\n" + "\n".join(still))
    common.print_text(f"\nIdle time by cause over many reports, where nsys is:\n  {_USE}")
    return 0
