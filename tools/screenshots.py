"""Pictures of the site as a browser shows it: `python -m tools.screenshots DIRECTORY`.

Each page in a wide and a narrow window, in the light and in the dark, to be looked at. Needs
Chromium (apt-get install chromium); the site is built first.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from tools import site

PAGES = ("index", "how-it-works", "errors", "runbook")
WIDTHS = {"wide": 1280, "narrow": 400}
SCHEMES = {"light": (0, "default"), "dark": (1, "slate")}
"""Place in zensical.toml, and name there."""
_HEIGHT = 1800
_TIMEOUT_S = 60
_FRAME = "/frame.html"
_QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


class _Site(SimpleHTTPRequestHandler):
    """The site, and a page that shows another of its pages as narrow and as dark as is asked.

    Windows of a browser have a least width, frames have not; and a scheme that was chosen is kept
    in the browser's storage, which pages of one origin share.
    """

    def do_GET(self) -> None:
        if urlsplit(self.path).path != _FRAME:
            super().do_GET()
            return
        body = _FRAME_PAGE.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Says nothing."""


_FRAME_PAGE = """<!doctype html><body style="margin:0"><script>
const asked = new URLSearchParams(location.search);
localStorage.setItem("/.__palette", asked.get("palette"));
const frame = document.createElement("iframe");
frame.style = "border:0;display:block";
frame.width = asked.get("width");
frame.height = asked.get("height");
frame.src = asked.get("page");
document.body.append(frame);
</script>"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.screenshots")
    parser.add_argument("directory", type=Path, help="where the pictures go")
    parser.add_argument("--page", action="append", help=f"instead of {', '.join(PAGES)}")
    parser.add_argument("--height", type=int, default=_HEIGHT, help="of a picture, in pixels")
    arguments = parser.parse_args()
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        sys.exit("No Chromium: apt-get install chromium")
    if site.build():
        return 1
    arguments.directory.mkdir(parents=True, exist_ok=True)
    with _served() as address:
        for page, (size, width), (light, (index, scheme)) in product(
            arguments.page or PAGES, WIDTHS.items(), SCHEMES.items()
        ):
            palette = {"index": index, "color": {"media": "", "scheme": scheme}}
            height = arguments.height
            asked = {"page": f"{page}.html", "width": width, "height": height}
            url = f"{address}{_FRAME}?{urlencode({**asked, 'palette': json.dumps(palette)})}"
            to = arguments.directory / f"{page}-{size}-{light}.png"
            _shoot(browser, url, (width, height), to)
            sys.stdout.write(f"{to}\n")
    return 0


@contextmanager
def _served() -> Iterator[str]:
    handler = partial(_Site, directory=str(site.SITE))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def _shoot(browser: str, url: str, size: tuple[int, int], to: Path) -> None:
    with tempfile.TemporaryDirectory() as profile:
        own = (f"--user-data-dir={profile}", f"--window-size={size[0]},{size[1]}")
        subprocess.run(
            [browser, *_QUIET, *own, f"--screenshot={to.absolute()}", url],
            check=True,
            capture_output=True,
            timeout=_TIMEOUT_S,
        )


if __name__ == "__main__":
    sys.exit(main())
