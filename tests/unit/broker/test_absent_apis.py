"""APIs about what Tarry does not have: true answers, and refusals in words that tools show."""

from __future__ import annotations

import pytest
from tests.support.absent_requests import (
    SCRAM_SHA_256,
    acl_of,
    all_acls,
    credential,
    quota,
)

from tarry.base import errors
from tarry.base.limits import LONG_ANSWER_UNITS_PER_TURN, USERS_PER_REQUEST_MAX
from tarry.protocol import api_keys
from tarry.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
)
from tarry.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
)
from tarry.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tarry.protocol.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from tarry.protocol.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from tarry.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from tarry.protocol.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from tarry.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from tarry.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from tarry.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from tarry.simulation.by_hand import BrokerByHand


def test_every_acl_of_a_request_is_refused(hand: BrokerByHand) -> None:
    created = hand.connect().ask(
        api_keys.CREATE_ACLS, 3, CreateAclsRequest([acl_of("User:a"), acl_of("User:b")])
    )
    deleted = hand.connect().ask(api_keys.DELETE_ACLS, 3, DeleteAclsRequest([all_acls()] * 3))

    assert isinstance(created, CreateAclsResponse)
    assert [each.error_code for each in created.results] == [errors.SECURITY_DISABLED] * 2
    assert isinstance(deleted, DeleteAclsResponse)
    assert [each.error_code for each in deleted.filter_results] == [errors.SECURITY_DISABLED] * 3


def test_no_quota_is_found(hand: BrokerByHand) -> None:
    answer = hand.connect().ask(
        api_keys.DESCRIBE_CLIENT_QUOTAS, 1, DescribeClientQuotasRequest([], strict=False)
    )

    assert isinstance(answer, DescribeClientQuotasResponse)
    assert (answer.error_code, answer.entries) == (errors.NONE, [])


@pytest.mark.parametrize(
    ("components", "error_code", "words"),
    [
        ([("", 0, "a")], errors.INVALID_REQUEST, "empty"),
        ([("user", 0, None)], errors.INVALID_REQUEST, "match string"),
        ([("user", 1, "a")], errors.INVALID_REQUEST, "match string"),
        ([("user", 9, None)], errors.INVALID_REQUEST, "match type 9"),
        ([("user", 0, "a"), ("user", 1, None)], errors.INVALID_REQUEST, "more than once"),
        ([("ip", 0, "a"), ("client-id", 1, None)], errors.INVALID_REQUEST, "IP"),
        ([("planet", 0, "a")], errors.UNSUPPORTED_VERSION, "planet"),
    ],
)
def test_a_question_for_quotas_that_makes_no_sense_is_refused(
    hand: BrokerByHand,
    components: list[tuple[str, int, str | None]],
    error_code: int,
    words: str,
) -> None:
    asked = [ComponentData(*one) for one in components]

    answer = hand.connect().ask(
        api_keys.DESCRIBE_CLIENT_QUOTAS, 1, DescribeClientQuotasRequest(asked, strict=False)
    )

    assert isinstance(answer, DescribeClientQuotasResponse)
    assert (answer.error_code, answer.entries) == (error_code, None)
    assert words in (answer.error_message or "")


def test_a_quota_is_refused_in_words_and_none_is_removed(hand: BrokerByHand) -> None:
    entries = [quota(5.0, remove=False), quota(0.0, remove=True)]

    answer = hand.connect().ask(api_keys.ALTER_CLIENT_QUOTAS, 1, AlterClientQuotasRequest(entries))

    assert isinstance(answer, AlterClientQuotasResponse)
    refused, removed = answer.entries
    assert refused.error_code == errors.INVALID_REQUEST
    assert "no quotas yet" in (refused.error_message or "")
    assert [(one.entity_type, one.entity_name) for one in refused.entity] == [("user", "anna")]
    assert (removed.error_code, removed.error_message) == (errors.NONE, None)


def spent_in_turns(hand: BrokerByHand) -> list[int]:
    """Return the units that each turn spends until the long answers are made."""
    spent = [hand.broker.long_answers.units_spent]
    while hand.broker.long_answers.has_work_left():
        hand.turn()
        spent.append(hand.broker.long_answers.units_spent)
    return spent


def test_many_quotas_are_refused_in_steps(hand: BrokerByHand) -> None:
    count = 20_000
    client = hand.connect()
    request = AlterClientQuotasRequest([quota(5.0, remove=False)] * count)

    client.send(api_keys.ALTER_CLIENT_QUOTAS, 1, request)
    spent = spent_in_turns(hand)

    (answer,) = client.answers()
    assert isinstance(answer, AlterClientQuotasResponse)
    assert len(answer.entries) == count
    assert len(spent) > count // LONG_ANSWER_UNITS_PER_TURN // 4
    assert max(spent) <= 2 * LONG_ANSWER_UNITS_PER_TURN


def test_no_user_has_credentials(hand: BrokerByHand) -> None:
    client = hand.connect()

    for users, expected in (
        (None, []),
        (
            [UserName("a"), UserName("b"), UserName("a")],
            [("a", errors.DUPLICATE_RESOURCE), ("b", errors.RESOURCE_NOT_FOUND)],
        ),
    ):
        answer = client.ask(
            api_keys.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, DescribeUserScramCredentialsRequest(users)
        )
        assert isinstance(answer, DescribeUserScramCredentialsResponse)
        assert answer.error_code == errors.NONE
        assert [(each.user, each.error_code) for each in answer.results] == expected


def test_a_request_names_no_more_users_than_a_turn_can_answer(hand: BrokerByHand) -> None:
    users = [UserName(str(number)) for number in range(USERS_PER_REQUEST_MAX + 1)]

    answer = hand.connect().ask(
        api_keys.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, DescribeUserScramCredentialsRequest(users)
    )

    assert isinstance(answer, DescribeUserScramCredentialsResponse)
    assert (answer.error_code, answer.results) == (errors.POLICY_VIOLATION, [])


def test_credentials_are_refused_in_words(hand: BrokerByHand) -> None:
    request = AlterUserScramCredentialsRequest(
        [ScramCredentialDeletion("a", SCRAM_SHA_256), ScramCredentialDeletion("b", SCRAM_SHA_256)],
        [credential("b"), credential("c")],
    )

    answer = hand.connect().ask(api_keys.ALTER_USER_SCRAM_CREDENTIALS, 0, request)

    assert isinstance(answer, AlterUserScramCredentialsResponse)
    assert [(each.user, each.error_code) for each in answer.results] == [
        ("a", errors.RESOURCE_NOT_FOUND),
        ("b", errors.UNSUPPORTED_SASL_MECHANISM),
        ("c", errors.UNSUPPORTED_SASL_MECHANISM),
    ]
    assert "no logins yet" in (answer.results[1].error_message or "")


def test_every_user_of_a_long_alteration_of_credentials_is_answered_in_steps(
    hand: BrokerByHand,
) -> None:
    count = USERS_PER_REQUEST_MAX + 1
    deletions = [ScramCredentialDeletion(f"d{each}", SCRAM_SHA_256) for each in range(count)]
    upsertions = [credential(f"u{each}") for each in range(count)]
    client = hand.connect()

    request = AlterUserScramCredentialsRequest(deletions, upsertions)
    client.send(api_keys.ALTER_USER_SCRAM_CREDENTIALS, 0, request)
    spent = spent_in_turns(hand)

    (answer,) = client.answers()
    assert isinstance(answer, AlterUserScramCredentialsResponse)
    assert [(each.user, each.error_code) for each in answer.results] == [
        *[(each.name, errors.RESOURCE_NOT_FOUND) for each in deletions],
        *[(each.name, errors.UNSUPPORTED_SASL_MECHANISM) for each in upsertions],
    ]
    assert max(spent) <= 2 * LONG_ANSWER_UNITS_PER_TURN


def test_no_transaction_is_listed_and_unknown_states_are_named_once(hand: BrokerByHand) -> None:
    request = ListTransactionsRequest(["Ongoing", "nope", "ongoing", "nope"], [])

    answer = hand.connect().ask(api_keys.LIST_TRANSACTIONS, 2, request)

    assert isinstance(answer, ListTransactionsResponse)
    assert (answer.error_code, answer.transaction_states) == (errors.NONE, [])
    assert answer.unknown_state_filters == ["nope", "ongoing"]


def test_what_keeps_the_metadata_is_told_to_those_who_ask_for_a_quorum(hand: BrokerByHand) -> None:
    answer = hand.connect().ask(api_keys.DESCRIBE_QUORUM, 2, DescribeQuorumRequest())

    assert isinstance(answer, DescribeQuorumResponse)
    assert answer.error_code == errors.UNSUPPORTED_VERSION
    assert answer.error_message == (
        "there is no KRaft quorum: this broker keeps its metadata itself; "
        '"tarry cluster status" shows the brokers'
    )


def test_a_member_of_a_share_group_is_refused_in_words(hand: BrokerByHand) -> None:
    request = ShareGroupHeartbeatRequest("g", "member", 0, None, ["orders"])

    answer = hand.connect().ask(api_keys.SHARE_GROUP_HEARTBEAT, 1, request)

    assert isinstance(answer, ShareGroupHeartbeatResponse)
    assert answer.error_code == errors.UNSUPPORTED_VERSION
    assert "no share groups" in (answer.error_message or "")


@pytest.mark.parametrize(("version", "is_told"), [(3, False), (4, True)])
def test_every_feature_of_kafkas_has_level_0(
    hand: BrokerByHand, version: int, is_told: bool
) -> None:
    answer = hand.connect().ask(api_keys.API_VERSIONS, version, ApiVersionsRequest("a", "1"))

    assert isinstance(answer, ApiVersionsResponse)
    assert answer.finalized_features == []
    told = {
        each.name: (each.min_version, each.max_version)
        for each in answer.supported_features
        if not each.name.startswith("tarry.")
    }
    assert ("transaction.version" in told) == is_told
    assert set(told.values()) == ({(0, 0)} if is_told else set())
