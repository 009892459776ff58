"""Looks at the built site as a reader does: over HTTP, with its search, page by page.

python docs/_site/check_site.py build/site
"""

from __future__ import annotations

import functools
import html
import http.server
import json
import re
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MAX_SIGNATURE = 100
"""Columns of a line of a signature."""

SEARCHED = {
    "send_many": "docs/reference/producer.html",
    "auto.offset.reset": "docs/configuration.html",
    "commit": "docs/consumer.html",
    "write_df": "docs/spark.html",
    "foreachBatch": "docs/spark.html",
}
"""Words that readers search for -> a page that the index must have for them."""

_CODE = re.compile(r"<(code|pre)\b.*?</\1>", re.DOTALL)
_SIGNATURE = re.compile(r'doc-signature highlight"><pre>(.*?)</pre>', re.DOTALL)
_TAG = re.compile(r"<[^>]+>")


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder without a line for each request."""

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve a folder as `python -m http.server` does; yield its address."""
    handler = functools.partial(QuietHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()


def read(address: str) -> str:
    """Return what a server answers; an error is raised."""
    with urllib.request.urlopen(address, timeout=10) as answer:
        body: bytes = answer.read()
    return body.decode()


def wrong_searches(root: str) -> Iterator[str]:
    """Yield what a reader would not find. The page's script searches in this index."""
    config = re.search(r'<script id="__config" type="application/json">(.*?)</script>', read(root))
    if config is None:
        yield "the first page does not load the search"
        return
    read(root + json.loads(config[1])["search"])  # the script that searches
    index = json.loads(read(root + "search/search_index.json"))
    for words, page in SEARCHED.items():
        places = [
            entry["location"]
            for entry in index["docs"]
            if words in html.unescape(_TAG.sub("", entry["title"] + " " + entry["text"]))
        ]
        if not any(place.split("#")[0] == page for place in places):
            yield f"a search for {words!r} does not lead to {page}"
        for place in places[:3]:
            read(root + place)


def wrong_pages(folder: Path) -> Iterator[str]:
    """Yield examples that are not set as code, and signatures that are not wrapped."""
    for page in sorted(folder.rglob("*.html")):
        text = page.read_text(encoding="utf-8")
        if "&gt;&gt;&gt;" in _CODE.sub("", text):
            yield f"{page}: an example is not set as code: its section is called Examples"
        for signature in _SIGNATURE.findall(text):
            lines = html.unescape(_TAG.sub("", signature)).splitlines()
            if max(map(len, lines), default=0) > MAX_SIGNATURE:
                yield f"{page}: a signature is not wrapped: {lines[0]}"


def main(folder: Path) -> int:
    """Print what is wrong with the site; return the exit status."""
    with serving(folder) as root:
        wrong = [*wrong_searches(root), *wrong_pages(folder)]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
