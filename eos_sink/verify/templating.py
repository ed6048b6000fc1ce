"""Renders HTML pages from Jinja templates; every value is escaped unless a template marks it safe.

A template extends `base.html`, which allows neither scripts nor requests, and takes its parts
from `parts.html`.
"""

from __future__ import annotations

from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined


def render_page(package: str, template: str, **values: Any) -> str:
    """Render a template of a package, from its folder `templates`."""
    environment = Environment(
        autoescape=True,
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("eos_sink.verify")]),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters["grouped"] = "{:,}".format
    return environment.get_template(template).render(values)
