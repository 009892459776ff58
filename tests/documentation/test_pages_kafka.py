"""Every page, followed word by word on one real Kafka as it is delivered.

All pages go on at the same time, as far as the processors allow: what takes time is the 3 seconds
that such a broker lets the first member of a group wait for others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.documentation.pages import all_pages, blocks
from tests.documentation.reader import Reader

PAGES = [page for page in all_pages() if blocks(page)]
READERS = 5


@pytest.fixture(scope="module")
def readings(
    request: pytest.FixtureRequest,
    stock_kafka: RealKafka,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Mapping[str, Future[None]]]:
    """What becomes of each page of this run, by page."""
    selected = {
        item.callspec.params["page"]
        for item in request.session.items
        if item.path == request.path and isinstance(item, pytest.Function)
    }

    pages = tmp_path_factory.mktemp("pages")  # which is not for many threads at once

    def read(page: str) -> None:
        folder = pages / page.replace("/", "-")
        folder.mkdir()
        with Reader(folder, stock_kafka.nodes[0].port) as reader:
            reader.follow(blocks(page))

    with ThreadPoolExecutor(READERS) as readers:
        yield {page: readers.submit(read, page) for page in PAGES if page in selected}
        readers.shutdown(cancel_futures=True)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_true_with_real_kafka(page: str, readings: Mapping[str, Future[None]]) -> None:
    readings[page].result()
