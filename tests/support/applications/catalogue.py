"""Applications that are too large or too slow for the tests, and how each is started.

What one needs is installed once and kept in `build/`: a virtual environment, a module of Go, a
directory of Node, jars.  `ApplicationMissing` says why one cannot be had.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.interop.client_face import ClientMissing
from tests.support.interop.foreign_clients import go_program, node_modules
from tests.support.interop.kafka_server import POM, KafkaUnavailable, class_path, java_command
from tests.support.places import BUILD, PEERS

PROGRAMS: Final = Path(__file__).with_name("programs")
GO_SOURCES: Final = PEERS / "go-applications"
NEST_SOURCES: Final = PEERS / "nest"
SPRING_POM: Final = POM.with_name("spring-pom.xml")
FLINK_POM: Final = POM.with_name("flink-pom.xml")
SPRING_SOURCE: Final = PEERS / "java" / "spring" / "RetryTopics.java"
FLINK_SOURCE: Final = PEERS / "java" / "flink" / "Passing.java"

INSTALL_SECONDS_MAX: Final = 600


class ApplicationMissing(Exception):
    """The application cannot run here; the text says why."""


@dataclass(frozen=True)
class Place:
    """Where an application reads and writes, and the directory that it may fill."""

    address: str
    source: str
    target: str
    directory: Path


@dataclass(frozen=True)
class Start:
    """A command, and what its environment has besides."""

    command: list[str]
    environment: dict[str, str]


@dataclass(frozen=True)
class Listed:
    """An application of the table."""

    name: str
    version: str
    what: str
    start: Callable[[Place], Start]


def run(command: list[str], directory: Path | None = None) -> None:
    """Run a step of an installation."""
    done = subprocess.run(
        command,
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS_MAX,
        check=False,
    )
    if done.returncode != 0:
        words = " ".join(command[:4])
        raise ApplicationMissing(f"{words}: {(done.stdout + done.stderr).strip()[-500:]}")


def python_of(*requirements: str) -> str:
    """The Python of a virtual environment that has these packages."""
    name = requirements[0].replace("==", "-")
    environment = BUILD / f"application-{name}"
    python = environment / "bin" / "python"
    ready = environment / "ready"
    if not ready.exists():
        run([sys.executable, "-m", "venv", "--clear", str(environment)])
        run([str(python), "-m", "pip", "install", "--quiet", *requirements])
        ready.touch()
    return str(python)


def settings_of(place: Place) -> dict[str, str]:
    """What programs that take no arguments are told by their environment."""
    return {
        "ADDRESS": place.address,
        "SOURCE": place.source,
        "TARGET": place.target,
        "PYTHONPATH": str(PROGRAMS),
    }


def quix_streams(place: Place) -> Start:
    python = python_of("quixstreams==3.28.1")
    words = [place.address, place.source, place.target]
    return Start([python, str(PROGRAMS / "quix_streams.py"), *words], {})


def bytewax(place: Place) -> Start:
    python = python_of("bytewax==0.21.1", "confluent-kafka")
    recovery = place.directory / "recovery"
    if not recovery.exists():
        recovery.mkdir()
        run([python, "-m", "bytewax.recovery", str(recovery), "1"])
    words = ["-m", "bytewax.run", "bytewax_flow", "-r", str(recovery), "-s", "1", "-b", "0"]
    return Start([python, *words], settings_of(place))


def faust(place: Place) -> Start:
    python = python_of("faust-streaming==0.15.3")
    words = ["-m", "faust", "-A", "faust_app", "worker", "--without-web", "-l", "info"]
    return Start([python, *words], settings_of(place))


def celery(place: Place) -> Start:
    python = python_of("celery==5.7.0", "confluent-kafka")
    words = [place.address, place.source, place.target]
    return Start([python, str(PROGRAMS / "celery_app.py"), *words], {})


def go_application(name: str) -> Callable[[Place], Start]:
    def start(place: Place) -> Start:
        try:
            program = go_program(GO_SOURCES, "go-applications")
        except ClientMissing as reason:
            raise ApplicationMissing(str(reason)) from reason
        return Start([str(program), name, place.address, place.source, place.target], {})

    return start


def nest(place: Place) -> Start:
    try:
        modules = node_modules(NEST_SOURCES, "nest")
    except ClientMissing as reason:
        raise ApplicationMissing(str(reason)) from reason
    # Modules of this form are looked for beside the program alone.
    program = modules.parent / "app.mjs"
    program.write_text((NEST_SOURCES / "app.mjs").read_text())
    return Start(["node", str(program), place.address, place.source, place.target], {})


def spring(place: Place) -> Start:
    words = {"address": place.address, "from": place.source, "to": place.target}
    options = [f"-D{key}={value}" for key, value in words.items()]
    try:
        java, *rest = java_command(str(SPRING_SOURCE), pom=SPRING_POM)
    except KafkaUnavailable as reason:
        raise ApplicationMissing(str(reason)) from reason
    return Start([java, *options, *rest], {})


def flink(place: Place) -> Start:
    classes = BUILD / "application-flink"
    try:
        jars = class_path(FLINK_POM)
    except KafkaUnavailable as reason:
        raise ApplicationMissing(str(reason)) from reason
    run(["javac", "-cp", jars, "-d", str(classes), str(FLINK_SOURCE)])
    options = ["-Xmx512m", "-XX:+UseSerialGC", "--add-opens=java.base/java.util=ALL-UNNAMED"]
    path = os.pathsep.join([jars, str(classes)])
    words = [place.address, place.source, place.target]
    return Start(["java", *options, "-cp", path, "Passing", *words], {})


APPLICATIONS: Final = (
    Listed("Quix Streams", "3.28.1", "a stateful dataframe with a changelog topic", quix_streams),
    Listed("Bytewax", "0.21.1", "a dataflow with its recovery store", bytewax),
    Listed("Faust (faust-streaming)", "0.15.3", "an agent with a table", faust),
    Listed("Celery", "5.7.0", "tasks by kombu's transport confluentkafka", celery),
    Listed("watermill-kafka", "3.0.6", "a router between two topics", go_application("watermill")),
    Listed("kafka-go", "0.4.51", "a reader in a group, and a writer", go_application("kafka-go")),
    Listed("NestJS", "11.2.6", "a microservice on the Kafka transport (kafkajs)", nest),
    Listed("Spring for Apache Kafka", "4.1.2", "a listener with a retry topic", spring),
    Listed("Flink", "2.0.0", "source and sink with checkpoints, at least once", flink),
)
