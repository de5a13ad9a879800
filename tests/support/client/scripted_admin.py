"""The real Admin over a scripted cluster: only its sockets and its clock are replaced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.client.hand_face import HandDriver
from tests.support.client.scripted_cluster import ScriptedCluster, seeded_random

from tarry.client.core.admin.core import AdminCore
from tarry.client.settings import SettingValue
from tarry.client.sync import admin as admin_module
from tarry.client.sync.admin import Admin


def serve_admins(cluster: ScriptedCluster, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Admin]:
    """Makes admins of this cluster, whose bootstrap server is its broker 1; also those that a
    command makes for itself."""

    class ScriptedAdmin(Admin):
        def __init__(self, settings: dict[str, SettingValue] | None = None, **more: Any) -> None:
            given = {**(settings or {}), "bootstrap.servers": str(cluster.brokers[1])}
            super().__init__(given, **more)
            self._driver.close()
            core = cluster.attach(AdminCore(self.settings, seeded_random(), cluster.now_ms))
            self._driver = HandDriver(cluster, core)  # type: ignore[assignment]

    monkeypatch.setattr(admin_module, "Admin", ScriptedAdmin)
    return ScriptedAdmin
