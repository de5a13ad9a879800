"""Repeated faults of one peer become one line a second."""

from __future__ import annotations

import logging

import pytest

from tarry.base.hosts import counted_host, host_of
from tarry.base.repeated import HOSTS_MAX, RepeatedFaults


@pytest.fixture
def faults() -> RepeatedFaults:
    return RepeatedFaults(logging.getLogger("tarry.test"))


def test_the_first_fault_is_written_at_once(
    faults: RepeatedFaults, caplog: pytest.LogCaptureFixture
) -> None:
    faults.report("10.0.0.1:5000", "a frame of 3 bytes is no request", 0)

    assert caplog.messages == ["10.0.0.1:5000: a frame of 3 bytes is no request"]


def test_faults_within_a_second_are_counted_whatever_the_port(
    faults: RepeatedFaults, caplog: pytest.LogCaptureFixture
) -> None:
    for i in range(100):
        faults.report(f"10.0.0.1:{5000 + i}", "bad", i * 9)
    faults.report("10.0.0.1:6000", "bad", 1_000)

    assert len(caplog.messages) == 2
    assert caplog.messages[1] == "10.0.0.1:6000: bad (and 99 more since the last line)"


def test_each_host_has_its_own_line(
    faults: RepeatedFaults, caplog: pytest.LogCaptureFixture
) -> None:
    faults.report("10.0.0.1:1", "bad", 0)
    faults.report("[::1]:1", "bad", 0)

    assert len(caplog.messages) == 2


def test_the_addresses_of_one_ipv6_network_are_one_host(
    faults: RepeatedFaults, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(100):
        faults.report(f"[2001:db8:0:1::{number:x}]:5000", "bad", 0)
    faults.report("[2001:db8:0:2::1]:5000", "bad", 0)
    faults.flush(1_000)

    assert len(caplog.messages) == 3
    assert caplog.messages[2] == "2001:db8:0:1::/64: 99 more faults, the last: bad"


@pytest.mark.parametrize(
    ("host", "counted"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("[::FFFF:10.0.0.1]", "10.0.0.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("[2001:db8:1:2::9]", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("a-name", "a-name"),
        ("not:an:address", "not:an:address"),
        ("", ""),
    ],
)
def test_a_host_is_counted_by_its_network(host: str, counted: str) -> None:
    assert counted_host(host) == counted


def test_what_was_counted_last_is_told_by_flush(
    faults: RepeatedFaults, caplog: pytest.LogCaptureFixture
) -> None:
    faults.report("10.0.0.1:1", "bad", 0)
    faults.report("10.0.0.1:2", "worse", 10)
    faults.flush(500)
    faults.flush(1_000)
    faults.flush(2_000)

    assert caplog.messages[1:] == ["10.0.0.1: 1 more faults, the last: worse"]


def test_the_number_of_remembered_hosts_is_bounded(
    faults: RepeatedFaults, caplog: pytest.LogCaptureFixture
) -> None:
    for i in range(HOSTS_MAX + 1):
        faults.report(f"10.0.{i // 256}.{i % 256}:1", "bad", 0)
    caplog.clear()
    faults.report("10.0.0.0:1", "bad", 1)

    assert len(caplog.messages) == 1


def test_a_peer_cannot_write_lines_of_its_own(
    faults: RepeatedFaults, caplog: pytest.LogCaptureFixture
) -> None:
    faults.report("10.0.0.1:1", "client id a\nERROR all is lost\x1b[2J", 0)

    assert caplog.messages == ["10.0.0.1:1: client id a?ERROR all is lost?[2J"]


def test_the_host_of_a_peer_is_found() -> None:
    assert [host_of(p) for p in ("1.2.3.4:5", "[::1]:5", "name", "")] == [
        "1.2.3.4",
        "[::1]",
        "name",
        "",
    ]


def test_a_fault_of_another_kind_is_written_at_once(
    caplog: pytest.LogCaptureFixture, faults: RepeatedFaults
) -> None:
    faults.report("10.0.0.1:5000", "bad", 0)
    faults.report("10.0.0.1:5001", "asks for transactions", 10, "transactions")
    faults.report("10.0.0.1:5002", "asks again", 20, "transactions")
    faults.flush(2_000)

    assert caplog.messages == [
        "10.0.0.1:5000: bad",
        "10.0.0.1:5001: asks for transactions",
        "10.0.0.1 transactions: 1 more faults, the last: asks again",
    ]
