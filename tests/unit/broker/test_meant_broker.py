"""A client of ApiVersions 5 says which broker it means (KIP-1242), and is sent away from others."""

from __future__ import annotations

import pytest

from tarry.base import errors
from tarry.protocol import api_keys
from tarry.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tarry.simulation.by_hand import BrokerByHand

OWN = "own"
OTHER = "other"


@pytest.mark.parametrize(
    ("cluster", "node_id", "error_code"),
    [
        (None, -1, errors.NONE),
        (OWN, 1, errors.NONE),
        (OTHER, 1, errors.REBOOTSTRAP_REQUIRED),
        (OWN, 2, errors.REBOOTSTRAP_REQUIRED),
        (OWN, -5, errors.REBOOTSTRAP_REQUIRED),
        ("", 1, errors.REBOOTSTRAP_REQUIRED),
        (OWN, -1, errors.INVALID_REQUEST),
        (None, 1, errors.INVALID_REQUEST),
    ],
)
def test_a_client_that_means_another_broker_is_sent_away(
    hand: BrokerByHand, cluster: str | None, node_id: int, error_code: int
) -> None:
    own = hand.broker.cluster_view.state.cluster_id
    cluster_id = own if cluster == OWN else cluster

    answer = hand.connect().ask(
        api_keys.API_VERSIONS, 5, ApiVersionsRequest("a", "1", cluster_id, node_id)
    )

    assert isinstance(answer, ApiVersionsResponse)
    assert answer.error_code == error_code
    assert (answer.api_keys == []) == (error_code != errors.NONE)
