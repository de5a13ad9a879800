"""The Java timers under measurement: their jars by Maven, the sources of `java/timer` by javac.

Compiled classes and the class path are kept in `build/`, by a digest of what they come from.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.interop.kafka_server import KafkaUnavailable, class_path  # noqa: E402

JAVA: Final = Path(__file__).resolve().parent / "java"

# The heap is large enough that ten million entries fit, and there from the start.
HEAP: Final = ("-Xms3g", "-Xmx3g")

# One collector thread that runs only while the others stand.
SERIAL: Final = ("-XX:+UseSerialGC",)

# What Kafka's own start script gives the broker.
AS_KAFKA: Final = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:MaxInlineLevel=15",
)


class JavaUnavailable(Exception):
    """The Java peers cannot be run on this machine; the text says what is missing."""


def java_classes(part: str) -> str:
    """Return the class path of the sources in `java/PART`, compiled, and of all jars they need."""
    if shutil.which("javac") is None:
        raise JavaUnavailable("javac is not installed; Debian has it in default-jdk-headless")
    try:
        jars = class_path(JAVA / "pom.xml")
    except KafkaUnavailable as reason:
        raise JavaUnavailable(str(reason)) from None
    except subprocess.TimeoutExpired:
        raise JavaUnavailable("Maven did not fetch the jars within ten minutes") from None
    sources = sorted((JAVA / part).glob("*.java"))
    digest = hashlib.sha256(jars.encode())
    for source in sources:
        digest.update(source.read_bytes())
    classes = ROOT / "build" / f"bench-java-{part}-{digest.hexdigest()[:12]}"
    if not classes.exists():
        unfinished = classes.with_name(f"{classes.name}.{os.getpid()}")
        done = subprocess.run(
            ["javac", "-Xlint:all", "-cp", jars, "-d", str(unfinished), *map(str, sources)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise JavaUnavailable(f"javac refused java/{part}: {done.stderr[-500:]}")
        unfinished.rename(classes)
    return os.pathsep.join((str(classes), jars))


def java_command(subject: str, options: tuple[str, ...]) -> list[str]:
    """Return the command that starts the measuring program for one Java timer."""
    return ["java", *HEAP, *options, "-cp", java_classes("timer"), "TimerBench", subject]


def java_version() -> str:
    """Return the first line of `java -version`."""
    if shutil.which("java") is None:
        return "no Java"
    done = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)
    return (done.stderr.splitlines() or ["no Java"])[0]
