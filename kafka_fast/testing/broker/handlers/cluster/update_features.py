"""UpdateFeatures: the version of transactions that the cluster speaks, its only feature."""

from __future__ import annotations

from kafka_fast.errors import BrokerError, ClusterAuthorizationFailed, InvalidUpdateVersion
from kafka_fast.protocol.apis.cluster.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from kafka_fast.testing.broker.acls import CLUSTER_NAME, Operation, ResourceType
from kafka_fast.testing.broker.received_request import ReceivedRequest
from kafka_fast.testing.broker.registry import answers
from kafka_fast.testing.broker.transactions.settings import FEATURE, NEWEST_VERSION

_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE = 1, 2, 3
_UPGRADE_TYPE_FROM_VERSION = 1


@answers(UpdateFeaturesRequest)
def answer(request: ReceivedRequest) -> UpdateFeaturesResponse:
    """Change all features that are named, or none of them."""
    body: UpdateFeaturesRequest = request.body
    planned = request.planned_error()
    if planned is not None:
        return UpdateFeaturesResponse(error_code=planned.code, error_message=None)
    try:
        if not request.allows(Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME):
            raise ClusterAuthorizationFailed("Cluster authorization failed.")
        for update in body.feature_updates:
            _check(request, update)
    except BrokerError as error:
        return UpdateFeaturesResponse(error_code=error.code, error_message=str(error.args[0]))
    if not body.validate_only:
        for update in body.feature_updates:
            request.state.set_transaction_version(update.max_version_level)
    return UpdateFeaturesResponse(
        error_code=0,
        error_message=None,
        results=[
            UpdatableFeatureResult(feature=one.feature, error_code=0, error_message="NONE")
            for one in body.feature_updates
        ],
    )


def _check(request: ReceivedRequest, update: FeatureUpdateKey) -> None:
    """Refuse an update as the controller does.

    Raises:
        InvalidUpdateVersion: with the reason.
    """
    level, kind = update.max_version_level, update.upgrade_type
    if request.version < _UPGRADE_TYPE_FROM_VERSION:
        kind = _SAFE_DOWNGRADE if update.allow_downgrade else _UPGRADE
    if update.feature != FEATURE:
        reason = "Local controller 1 does not support this feature."
    elif kind not in (_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE):
        reason = "The controller does not support the given upgrade type."
    elif level < 0:
        reason = "A feature version cannot be less than 0."
    elif level > NEWEST_VERSION:
        reason = f"Local controller 1 only supports versions 0-{NEWEST_VERSION}"
    elif level < request.state.transaction_version and kind == _UPGRADE:
        reason = (
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade."
        )
    else:
        return
    raise InvalidUpdateVersion(
        "The update failed for all features since the following feature had an error: "
        f"Invalid update version {level} for feature {update.feature}. {reason}"
    )
