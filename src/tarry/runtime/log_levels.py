"""Log levels: the door `LogLevels` over the loggers of this process."""

from __future__ import annotations

import logging


class ProcessLevels:
    """Levels of the process's loggers, for a broker that is the whole process."""

    def level(self, name: str) -> int:
        return logging.getLogger(name).getEffectiveLevel()

    def set_level(self, name: str, level: int) -> None:
        logging.getLogger(name).setLevel(level)
