"""Receipts of tables: what a wait takes."""

from __future__ import annotations

import pytest

from tarry.client.arrow.receipts import TableReceipt

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'tarry[arrow]'")


@pytest.mark.parametrize(
    ("timeout", "error", "sentence"),
    [("5", TypeError, "timeout='5' is no number"), (-1, ValueError, "timeout=-1 is not between 0")],
)
def test_a_wait_for_a_table_refuses_what_is_no_time(
    timeout: object, error: type[Exception], sentence: str
) -> None:
    from tarry.client.arrow import ArrowProducer

    producer = ArrowProducer()
    receipt = TableReceipt(producer._driver, [])

    with pytest.raises(error, match=sentence):
        receipt.result(timeout)  # type: ignore[arg-type]

    producer.abort()
