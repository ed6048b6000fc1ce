"""Renders the report as one HTML page."""

from __future__ import annotations

import time
from typing import Any

from chaos import plots
from eos_sink.verify.pages import render_page

Figures = dict[str, Any]


def render_chaos_page(figures: Figures) -> str:
    """Render the whole page."""
    values = {
        "title": f"chaos, seed {figures['seed']}",
        "began": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(figures["began"])),
        "throughput": plots.throughput(figures),
        "latency": plots.latency(figures),
        "recoveries": plots.recoveries(figures) if figures["recovery_s"]["kills"] else "",
    }
    return render_page("chaos", "chaos.html", **(figures | values))
