"""Record batches: checked as they are produced, opened as they are read, built."""

from tarry.records.batch import (
    BatchCheck,
    BatchHeader,
    batches_in,
    check_batch,
    decode_batch_header,
)
from tarry.records.builder import BatchBuilder
from tarry.records.record import Record, decode_records

__all__ = [
    "BatchBuilder",
    "BatchCheck",
    "BatchHeader",
    "Record",
    "batches_in",
    "check_batch",
    "decode_batch_header",
    "decode_records",
]
