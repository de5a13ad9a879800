"""Every version of every API is sent once, and its answer read by a foreign codec (kio)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kio.index import load_payload_module
from kio.serial import entity_reader
from kio.static.constants import EntityType
from tests.support.kio_versions import kio_knows
from tests.support.sound_requests import produce_request, request_of

from tarry.base import errors
from tarry.protocol import api_keys
from tarry.protocol.api_keys import APIS
from tarry.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tarry.protocol.messages.find_coordinator import FindCoordinatorRequest
from tarry.simulation.by_hand import BrokerByHand

CASES = [
    pytest.param(key, version, id=f"{APIS[key].name}-v{version}")
    for key, route in BrokerByHand().broker.routes.items()
    for version in range(route.version_min, route.version_max + 1)
    if kio_knows(key, version)
]


# Right answers to a client that was never a member, or about a group that is not there or of a kind
# that is not.
EXPECTED_ERRORS: dict[int, set[int]] = {
    api_keys.JOIN_GROUP: {errors.MEMBER_ID_REQUIRED},
    api_keys.SYNC_GROUP: {errors.UNKNOWN_MEMBER_ID},
    api_keys.HEARTBEAT: {errors.UNKNOWN_MEMBER_ID},
    api_keys.LEAVE_GROUP: {errors.UNKNOWN_MEMBER_ID},
    api_keys.DESCRIBE_GROUPS: {errors.GROUP_ID_NOT_FOUND},
    api_keys.DELETE_GROUPS: {errors.GROUP_ID_NOT_FOUND},
    api_keys.OFFSET_DELETE: {errors.GROUP_ID_NOT_FOUND},
    api_keys.CONSUMER_GROUP_HEARTBEAT: {errors.UNSUPPORTED_VERSION},
    api_keys.CONSUMER_GROUP_DESCRIBE: {errors.UNSUPPORTED_VERSION},
    api_keys.SHARE_GROUP_HEARTBEAT: {errors.UNSUPPORTED_VERSION},
    api_keys.DESCRIBE_ACLS: {errors.SECURITY_DISABLED},
    api_keys.CREATE_ACLS: {errors.SECURITY_DISABLED},
    api_keys.DELETE_ACLS: {errors.SECURITY_DISABLED},
    api_keys.ALTER_CLIENT_QUOTAS: {errors.INVALID_REQUEST},
    api_keys.DESCRIBE_USER_SCRAM_CREDENTIALS: {errors.RESOURCE_NOT_FOUND},
    api_keys.ALTER_USER_SCRAM_CREDENTIALS: {errors.UNSUPPORTED_SASL_MECHANISM},
    api_keys.DESCRIBE_QUORUM: {errors.UNSUPPORTED_VERSION},
    api_keys.ELECT_LEADERS: {errors.ELECTION_NOT_NEEDED},
    api_keys.ALTER_PARTITION_REASSIGNMENTS: {errors.NO_REASSIGNMENT_IN_PROGRESS},
    api_keys.UNREGISTER_BROKER: {errors.BROKER_ID_NOT_REGISTERED},
}


def error_codes(entity: Any) -> list[int]:
    """Every error code anywhere in what kio read."""
    found: list[int] = []
    for name in getattr(entity, "__dataclass_fields__", {}):
        value = getattr(entity, name)
        if name == "error_code":
            found.append(int(value.value))
        elif isinstance(value, tuple):
            for item in value:
                found += error_codes(item)
        elif hasattr(value, "__dataclass_fields__"):
            found += error_codes(value)
    return found


@pytest.mark.parametrize(("key", "version"), CASES)
def test_every_version_is_answered_without_an_error(
    hand: BrokerByHand, batch: Callable[..., bytes], key: int, version: int
) -> None:
    client = hand.connect()
    topic_id = hand.broker.topics["orders"].topic_id
    client.ask(api_keys.PRODUCE, 13, produce_request(13, topic_id, batch(b"a")))
    if key in EXPECTED_ERRORS or key in (api_keys.OFFSET_COMMIT, api_keys.OFFSET_FETCH):
        client.ask(api_keys.FIND_COORDINATOR, 0, FindCoordinatorRequest(key="g"))
    before = len(hand.transport.sent[client.connection_id])
    client.send(key, version, request_of(key, version, topic_id, batch(b"b")))
    hand.settle()
    if key == api_keys.DELETE_RECORDS:
        # The recovery points are written by a duty of the timer.
        hand.turn(after_ms=1)
        hand.settle()
    if key == api_keys.JOIN_GROUP:
        # Before version 4 a new member is let in at once, and waits out the initial delay.
        for _ in range(10):
            hand.turn(after_ms=400)
    answer = hand.transport.sent[client.connection_id][before:]

    module = load_payload_module(key, version, EntityType.response)
    response_type = getattr(module, f"{APIS[key].name}Response")
    header, header_size = entity_reader(response_type.__header_schema__)(answer, 4)
    response, size = entity_reader(response_type)(answer, 4 + header_size)
    assert int.from_bytes(answer[:4], "big") == len(answer) - 4 == header_size + size
    assert header.correlation_id > 1
    assert set(error_codes(response)) <= {0} | EXPECTED_ERRORS.get(key, set())
    if key in (api_keys.PRODUCE, api_keys.FETCH, api_keys.LIST_OFFSETS):
        assert b"a" in answer if key == api_keys.FETCH else response


def test_what_is_advertised_is_what_is_routed(hand: BrokerByHand) -> None:
    answer = hand.connect().ask(api_keys.API_VERSIONS, 0, ApiVersionsRequest())

    assert isinstance(answer, ApiVersionsResponse)
    advertised = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
    assert advertised == {
        0: (0, 13),
        1: (4, 18),
        2: (1, 11),
        3: (0, 13),
        8: (2, 10),
        9: (1, 10),
        10: (0, 6),
        11: (0, 9),
        12: (0, 4),
        13: (0, 5),
        14: (0, 5),
        15: (0, 6),
        16: (0, 5),
        18: (0, 5),
        19: (2, 7),
        20: (1, 6),
        21: (0, 2),
        22: (0, 5),
        23: (2, 4),
        29: (1, 3),
        30: (1, 3),
        31: (1, 3),
        32: (1, 4),
        33: (0, 2),
        35: (1, 5),
        37: (0, 3),
        42: (0, 3),
        43: (0, 2),
        44: (0, 1),
        45: (0, 1),
        46: (0, 0),
        47: (0, 0),
        48: (0, 1),
        49: (0, 1),
        50: (0, 0),
        51: (0, 0),
        55: (0, 2),
        57: (0, 2),
        60: (0, 2),
        61: (0, 0),
        64: (0, 0),
        66: (0, 2),
        68: (0, 1),
        69: (0, 1),
        74: (0, 1),
        75: (0, 0),
        76: (1, 1),
    }
