"""The broker's settings: those changed while it ran, laid over those of its file."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from tarry.base.errors import InvalidSetting
from tarry.base.settings import Settings
from tarry.cluster.state.records import EVERY_BROKER
from tarry.cluster.state.state import ClusterState

logger = logging.getLogger("tarry.cluster")


def take_over_changes(settings: Settings, view: ClusterState) -> None:
    """Lay the changed settings of the metadata over those of the file.

    A setting that is no longer valid, as after a change of release, is left out with a line in the
    log: a broker that does not start could not be given a better value.
    """
    cluster = view.configs_of_broker(EVERY_BROKER)
    own = view.configs_of_broker(settings.node_id)
    try:
        settings.overlay(cluster, own)
    except InvalidSetting:
        settings.overlay(_possible(settings, cluster), _possible(settings, own))


def _possible(settings: Settings, configs: Mapping[str, str]) -> dict[str, str]:
    possible: dict[str, str] = {}
    for key, text in configs.items():
        try:
            settings.overlaid({key: text}, {})
        except InvalidSetting as fault:
            logger.error("a setting that was changed while running is left out: %s", fault)
        else:
            possible[key] = text
    return possible
