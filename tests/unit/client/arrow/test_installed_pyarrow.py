"""The pyarrow that is installed: which ones do, and what is said of the form that runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tarry
from tarry.client.arrow.installed import load_pyarrow

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'tarry[arrow]'")


@pytest.fixture(autouse=True)
def first_use() -> Iterator[None]:
    load_pyarrow.cache_clear()
    yield
    load_pyarrow.cache_clear()


def test_an_old_pyarrow_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pa, "__version__", "19.0.1")

    with pytest.raises(ImportError, match=r'pyarrow 20 or newer, not 19.0.1.*"tarry\[arrow\]"'):
        load_pyarrow()


@pytest.mark.parametrize(("form", "count"), [("interpreted", 1), ("compiled", 0)])
def test_the_interpreted_form_is_told_once(
    form: str, count: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tarry, "FORM", form)

    for _ in range(3):
        assert load_pyarrow() is pa

    assert [record.message.count("runs interpreted") for record in caplog.records] == [1] * count
