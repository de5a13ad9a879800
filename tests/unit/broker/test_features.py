"""Feature levels as clients ask for them and are told of them: UpdateFeatures and ApiVersions."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from tests.support.broker.admin_user import DELETE, GROUP, SET, Operator, operator

from tarry.base import errors
from tarry.cluster.state.levels import GROUP_CONFIGS
from tarry.protocol import api_keys
from tarry.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tarry.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

NEWEST = 2
KEY = "consumer.session.timeout.ms"


@pytest.fixture
def someone() -> Operator:
    return operator({})


def update(
    someone: Operator, *levels: tuple[str, int], version: int = NEWEST, **words: Any
) -> UpdateFeaturesResponse:
    is_validated = words.pop("validate_only", False)
    updates = [FeatureUpdateKey(name, level, **words) for name, level in levels]
    request = UpdateFeaturesRequest(feature_updates=updates, validate_only=is_validated)
    answer = someone.client.ask(api_keys.UPDATE_FEATURES, version, request)
    assert isinstance(answer, UpdateFeaturesResponse)
    return answer


def told(someone: Operator, version: int = 5) -> ApiVersionsResponse:
    answer = someone.client.ask(api_keys.API_VERSIONS, version, ApiVersionsRequest("test", "1"))
    assert isinstance(answer, ApiVersionsResponse)
    return answer


def supported(answer: ApiVersionsResponse) -> dict[str, tuple[int, int]]:
    return {one.name: (one.min_version, one.max_version) for one in answer.supported_features}


def finalized(answer: ApiVersionsResponse) -> dict[str, tuple[int, int]]:
    return {
        one.name: (one.min_version_level, one.max_version_level)
        for one in answer.finalized_features
    }


def test_a_level_comes_into_force_and_every_client_is_told(someone: Operator) -> None:
    before = told(someone)

    answer = update(someone, (GROUP_CONFIGS, 1))

    after = told(someone)
    assert (answer.error_code, answer.error_message) == (errors.NONE, None)
    assert supported(before)[GROUP_CONFIGS] == (0, 1)
    assert finalized(before) == {}
    assert finalized(after) == {GROUP_CONFIGS: (1, 1)}
    assert after.finalized_features_epoch > before.finalized_features_epoch >= 0


def test_clients_that_fail_at_a_lowest_level_of_0_are_told_of_levels_in_force_alone(
    someone: Operator,
) -> None:
    update(someone, (GROUP_CONFIGS, 1))

    answer = told(someone, 3)

    assert supported(answer) == {}
    assert finalized(answer) == {GROUP_CONFIGS: (1, 1)}


@pytest.mark.parametrize("version", [0, 1])
def test_older_versions_have_a_result_for_each_feature(someone: Operator, version: int) -> None:
    answer = update(someone, (GROUP_CONFIGS, 1), version=version)

    found = [(one.feature, one.error_code) for one in answer.results]
    assert found == [(GROUP_CONFIGS, errors.NONE)]


@pytest.mark.parametrize(
    ("level", "words"),
    [
        ((GROUP_CONFIGS, 2), "up to level 1"),
        ((GROUP_CONFIGS, -1), "cannot be less than 0"),
        (("group.version", 1), "does not know group.version"),
        (("x" * 30_000, 1), "does not know"),
    ],
)
def test_what_cannot_come_into_force_is_refused(
    someone: Operator, level: tuple[str, int], words: str
) -> None:
    answer = update(someone, level)

    assert answer.error_code == errors.INVALID_UPDATE_VERSION
    assert words in (answer.error_message or "")
    assert finalized(told(someone)) == {}


@pytest.mark.parametrize("upgrade_type", [-128, 0, 4, 127])
def test_a_type_of_update_that_there_is_not_is_refused_in_kafkas_words(
    someone: Operator, upgrade_type: int
) -> None:
    answer = update(someone, (GROUP_CONFIGS, -1), upgrade_type=upgrade_type)

    assert (answer.error_code, answer.error_message) == (
        errors.INVALID_UPDATE_VERSION,
        f"Invalid update version -1 for feature {GROUP_CONFIGS}. The controller does not support "
        "the given upgrade type.",
    )


def test_all_levels_of_a_request_come_into_force_or_none(someone: Operator) -> None:
    answer = update(someone, (GROUP_CONFIGS, 1), ("tarry.wonders", 1))

    assert answer.error_code == errors.INVALID_UPDATE_VERSION
    assert finalized(told(someone)) == {}


def test_a_feature_that_is_named_twice_is_refused(someone: Operator) -> None:
    answer = update(someone, (GROUP_CONFIGS, 1), (GROUP_CONFIGS, 0))

    assert answer.error_code == errors.INVALID_REQUEST


def test_only_told_what_would_be_changes_nothing(someone: Operator) -> None:
    could = update(someone, (GROUP_CONFIGS, 1), validate_only=True)
    could_not = update(someone, (GROUP_CONFIGS, 2), validate_only=True)

    assert could.error_code == errors.NONE
    assert could_not.error_code == errors.INVALID_UPDATE_VERSION
    assert finalized(told(someone)) == {}


def test_a_level_is_lowered_only_by_those_who_say_so(someone: Operator) -> None:
    update(someone, (GROUP_CONFIGS, 1))

    refused = update(someone, (GROUP_CONFIGS, 0))
    raised = update(someone, (GROUP_CONFIGS, 2), upgrade_type=2)
    no_type = update(someone, (GROUP_CONFIGS, 0), upgrade_type=9)
    lowered = update(someone, (GROUP_CONFIGS, 0), upgrade_type=2)

    assert refused.error_code == errors.INVALID_UPDATE_VERSION
    assert "upgrade type" in (refused.error_message or "")
    assert raised.error_code == errors.INVALID_UPDATE_VERSION
    assert no_type.error_code == errors.INVALID_UPDATE_VERSION
    assert lowered.error_code == errors.NONE
    assert finalized(told(someone)) == {}


def test_the_flag_of_version_0_lowers_a_level(someone: Operator) -> None:
    update(someone, (GROUP_CONFIGS, 1))

    update(someone, (GROUP_CONFIGS, 0), version=0, allow_downgrade=True)

    assert finalized(told(someone)) == {}


def test_a_level_on_which_settings_rest_is_not_lowered(someone: Operator) -> None:
    someone.change(GROUP, "g", (KEY, SET, "50000"))

    kept = update(someone, (GROUP_CONFIGS, 0), upgrade_type=3)
    someone.change(GROUP, "g", (KEY, DELETE, None))
    lowered = update(someone, (GROUP_CONFIGS, 0), upgrade_type=3)

    assert kept.error_code == errors.INVALID_UPDATE_VERSION
    assert lowered.error_code == errors.NONE


def test_the_log_says_who_brought_a_level_into_force(
    someone: Operator, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "tarry.broker"):
        update(someone, (GROUP_CONFIGS, 1))

    assert "feature tarry.group.configs at level 1 (was 0), by " in caplog.text


def test_the_first_use_brings_a_level_into_force(someone: Operator) -> None:
    outcome = someone.change(GROUP, "g", (KEY, SET, "50000"))

    assert outcome.error_code == errors.NONE
    assert finalized(told(someone)) == {GROUP_CONFIGS: (1, 1)}
