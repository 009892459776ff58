"""The feature `transaction.version`: where it is told, and how it is changed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka_fast import errors
from kafka_fast.protocol.apis.cluster.api_versions import ApiVersionsRequest
from kafka_fast.protocol.apis.cluster.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from tests.integration.scenarios.groups import until
from tests.integration.scenarios.transactions.conftest import Site
from tests.integration.scenarios.transactions.producers import log_of

NAME = "transaction.version"
UPGRADE, SAFE, UNSAFE = 1, 2, 3
REFUSED = errors.InvalidUpdateVersion.code


def told(site: Site) -> tuple[int, dict[str, tuple[int, int]]]:
    """Return the epoch of the features, and the levels of the transactions' feature."""
    request = ApiVersionsRequest(client_software_name="x", client_software_version="1")
    answer = site.client.ask(request, 4)
    supported = {one.name: (one.min_version, one.max_version) for one in answer.supported_features}
    assert supported[NAME] == (0, 2)
    levels = {
        one.name: (one.min_version_level, one.max_version_level)
        for one in answer.finalized_features
        if one.name == NAME
    }
    return answer.finalized_features_epoch, levels


def update(
    site: Site, level: int, kind: int = UPGRADE, *, name: str = NAME, validate_only: bool = False
) -> UpdateFeaturesResponse:
    """Change a feature."""
    change = FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
    request = UpdateFeaturesRequest(
        timeout_ms=5000, feature_updates=[change], validate_only=validate_only
    )
    response: UpdateFeaturesResponse = site.client.ask(request, 1)
    return response


def change(site: Site, level: int) -> None:
    """Change the feature, and wait until the broker says so."""
    assert update(site, level, UPGRADE).error_code in (0, REFUSED)
    assert update(site, level, SAFE).error_code == 0
    until(lambda: told(site)[1], lambda levels: levels == ({NAME: (level, level)} if level else {}))


@pytest.fixture
def changing(site: Site) -> Iterator[Site]:
    """A broker whose version of transactions is as before in the end."""
    yield site
    change(site, site.version)


def test_the_version_is_told(site: Site) -> None:
    epoch, levels = told(site)
    assert epoch >= 0
    assert levels == ({NAME: (site.version, site.version)} if site.version else {})


def test_what_cannot_be_changed(site: Site) -> None:
    before = told(site)[1]
    assert update(site, 3).error_code == REFUSED
    assert update(site, -1).error_code == REFUSED
    assert update(site, 2, name="nope").error_code == REFUSED
    assert update(site, site.version, 0).error_code == REFUSED
    if site.version:
        downgrade = update(site, site.version - 1)
        assert downgrade.error_code == REFUSED
        assert "setting the upgrade type to either safe or unsafe downgrade" in (
            downgrade.error_message or ""
        )
    assert update(site, site.version).error_code == 0
    assert update(site, 0, SAFE, validate_only=True).error_code == 0
    assert told(site)[1] == before


def test_a_change_is_told_under_a_later_epoch(changing: Site) -> None:
    for level in (1, 2, 0):
        before = told(changing)[0]
        change(changing, level)
        assert told(changing)[0] > before


def test_a_transaction_ends_in_the_version_of_its_producer(changing: Site, topic: str) -> None:
    """The version is the client's word: an open transaction of version 1 ends as such."""
    change(changing, 1)
    old = changing.producer(protocol=1)
    old.written(topic)
    change(changing, 2)
    old.end(commit=True)
    assert log_of(changing.client, topic) == [("data", 0), ("COMMIT", 0)]
    new = changing.producer(protocol=2)
    new.written(topic, 1)
    change(changing, 1)
    new.end(commit=True)
    assert log_of(changing.client, topic, 1) == [("data", 0), ("COMMIT", 1)]


def test_a_fence_is_of_the_version_of_the_cluster(changing: Site, topic: str) -> None:
    change(changing, 2)
    producer = changing.producer(protocol=2)
    expected = (producer.producer_id, producer.epoch)
    producer.written(topic)
    change(changing, 1)
    producer.copy().ask_for_id()
    producer.wait_for_state("CompleteAbort")
    assert producer.ask_for_id(expected=expected).error_code == errors.ProducerFenced.code
