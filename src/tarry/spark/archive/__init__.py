"""Archive: topics as Parquet files that any reader takes, and the proof that nothing is missing.

| below the archive's path | holds |
|---|---|
| `topic=T/date=D/hour=H/T-P-FIRST-END.parquet` | records of partition P, up to before END |
| `topic=_T/…/topic-_T-P-FIRST-END.parquet` | the same, where readers would pass over `_T-…` |
| `_tarry/archive.json` | how files are laid out, and which cluster they come from |
| `_tarry/manifests/N.json` | round N: ranges of offsets, files, checksums |
| `_tarry/staged/RUN/` | files of a round that is under way |

A round counts when its manifest is there.  Only then its files become visible, so a reader that
knows nothing of manifests never sees a record that a later round reads again.
"""
