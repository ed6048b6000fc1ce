"""HTML pages from Jinja templates, and the style of the plots in them.

Every value in a page is escaped unless a template marks it safe. A template extends `base.html`,
which allows neither scripts nor requests, and takes its parts from `parts.html`. Plots are SVG:
text stays text, and the same data gives the same file.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

import matplotlib as mpl
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

# Needs no screen.
mpl.use("svg")

INK, FAINT, BLUE, ORANGE = "#1f2937", "#9ca3af", "#2563eb", "#d97706"
RED, VIOLET, GREEN = "#dc2626", "#7c3aed", "#0f766e"
WIDTH = 9.6
"""Of a figure, in inches."""

STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "eos-sink",
    "font.family": "sans-serif",
    "font.sans-serif": ["Inter", "Segoe UI", "Helvetica", "Arial", "DejaVu Sans"],
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e5e7eb",
    "grid.linewidth": 0.6,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
}
"""For `mpl.rc_context` around all drawing."""


def render_page(package: str, template: str, **values: Any) -> str:
    """Render a template from the folder `templates` of a package."""
    environment = Environment(
        autoescape=True,
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("eos_sink_lab.verify")]),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters["grouped"] = "{:,}".format
    return environment.get_template(template).render(values)


def label_plain_numbers(axis: Axis) -> None:
    """Label a logarithmic axis with plain numbers, even if it spans less than a decade."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_formatter(NullFormatter())


def plot_shares(axes: Axes, values: Iterable[float], color: str, label: str) -> None:
    """Plot the percentage of the values that are at most x; there is at least one value."""
    ordered = sorted(values)
    shares = [(place + 1) / len(ordered) * 100 for place in range(len(ordered))]
    axes.step(ordered, shares, where="post", color=color, linewidth=1.6, label=label)
    axes.set_ylim(0, 101)


def render_svg(figure: Figure) -> str:
    """Return the SVG element as text, and close the figure."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    plt.close(figure)
    text = buffer.getvalue()
    return text[text.index("<svg") :]
