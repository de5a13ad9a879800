"""Settings of the jobs' clients, and the Spark session that a command starts and ends."""

from __future__ import annotations

import logging
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from tarry.cli.running import CONSUMER, Cluster, client_arguments, fail, key_values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tarry.spark.pipeline.file.sections import Pipeline

# Logging of Spark's Java below a command.
LOGGING: Final = Path(__file__).with_name("log4j2.properties")

# Prefix of all settings of Spark's.
OF_SPARK: Final = "spark."

# Setting that has several options at once: a user's stand behind ours.
JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"

# How often a person is told.
TELL_SECONDS: Final = 10.0


def settings_of(cluster: Cluster, owner: str = CONSUMER) -> dict[str, str]:
    """Return the settings of a kind of clients, under Kafka's keys."""
    settings = client_arguments(cluster.bootstrap, (), owner=owner)
    settings.update(given_settings(cluster))
    return {key: str(value) for key, value in settings.items()}


def given_settings(cluster: Cluster) -> dict[str, str]:
    """Return what the command line itself says, without profile and defaults: -b and -X."""
    settings: dict[str, str] = {}
    source = click.get_current_context().get_parameter_source("bootstrap")
    if source is ParameterSource.COMMANDLINE:
        settings["bootstrap.servers"] = cluster.bootstrap
    return {**settings, **key_values(cluster.client_settings, "setting")}


def reach(cluster: Cluster) -> None:
    """End with a sentence where no broker answers in time, before any work begins.

    A job itself waits longer, because a broker may start again while it runs.
    """
    with closing(cluster.admin()) as admin:
        admin.describe_cluster(cluster.timeout)


def reach_pipeline(pipeline: Pipeline) -> None:
    """End with a sentence where the broker of a pipeline does not answer in the client's time
    (`default.api.timeout.ms`), before a Spark is started; tell meanwhile what is waited for."""
    from tarry.cli.status_line import Waiting
    from tarry.spark.pipeline.topics import admin_of

    with closing(admin_of(pipeline)) as admin:
        admin.on_wait = Waiting(pipeline.source.bootstrap).look
        admin.describe_cluster()


@contextmanager
def telling_tasks(spark: SparkSession, *, is_silent: bool) -> Iterator[None]:
    """Tell on stderr how far Spark's tasks are, while a job runs that has no rounds."""
    if is_silent:
        yield
        return
    ended = threading.Event()
    tracker = spark.sparkContext.statusTracker()

    def tell() -> None:
        while not ended.wait(TELL_SECONDS):
            for stage in tracker.getActiveStageIds():
                told = tracker.getStageInfo(stage)
                if told is not None:
                    click.echo(f"{told.numCompletedTasks} of {told.numTasks} tasks", err=True)

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def spark_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of its Spark: --master and --conf."""
    conf = click.option(
        "--conf",
        "conf",
        metavar="KEY=VALUE",
        multiple=True,
        help="Setting of Spark's, such as spark.driver.memory=4g; may be repeated.",
    )
    master = click.option("--master", metavar="URL", help="Spark's master (default: local[*]).")
    return master(conf(command))


@contextmanager
def spark_session(
    master: str | None,
    *,
    is_local: bool,
    conf: Iterable[str] = (),
    settings: Mapping[str, str] | None = None,
) -> Iterator[SparkSession | None]:
    """Yield a session that ends with the command; None without Spark.

    `settings` are Spark's; those of `conf`, as KEY=VALUE, go before them.
    """
    wanted = {**(settings or {}), **key_values(conf, "setting of Spark's")}
    unknown = next((key for key in wanted if not key.startswith(OF_SPARK)), None)
    if unknown is not None:
        raise click.UsageError(f"--conf {unknown} is no setting of Spark's: they begin with spark.")
    if is_local:
        yield None
        return
    _check_installed()
    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder
    builder = builder.appName("tarry spark")
    # On a busy machine a worker needs longer than Spark's 15 s to come up.
    own = {"spark.python.authenticate.socketTimeout": "120s"}
    # Under spark-submit the master is given already.
    if master is not None or not _is_submitted():
        builder = builder.master(master or "local[*]")
        own |= {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
        own |= java_options(os.environ)
    if JAVA_OPTIONS in own and JAVA_OPTIONS in wanted:
        wanted[JAVA_OPTIONS] = f"{own[JAVA_OPTIONS]} {wanted[JAVA_OPTIONS]}"
    for key, value in {**own, **wanted}.items():
        builder = builder.config(key, value)
    session = _started(builder, master)
    session.sparkContext.setLogLevel("ERROR")
    # By PySpark's own function, which makes it; what it would log comes as an error, and is told.
    PySparkLogger.getLogger("SQLQueryContextLogger").disabled = True
    logging.getLogger().addFilter(_is_news)
    try:
        yield session
    except Exception as error:
        if not _is_of_spark(error):
            raise
        from tarry.spark.pipeline.faults import fault_of

        fail(fault_of(error).sentence)
    finally:
        # A process of Java's that is gone has nothing left to stop; what ended it was told.
        with suppress(Exception), warnings.catch_warnings(action="ignore"):
            session.stop()


def _is_news(record: logging.LogRecord) -> bool:
    """Return false for what the bridge to Java logs, at the root, beside the error it raises."""
    return "while sending command" not in record.getMessage()


def _is_of_spark(error: Exception) -> bool:
    """Tell whether Spark or its bridge to Java raised an error, whose text is a stack of Java's."""
    # Not of a pipe: somebody stopped listening to the command.
    is_gone = isinstance(error, ConnectionRefusedError | ConnectionResetError)
    return is_gone or type(error).__module__.startswith(("pyspark.", "py4j."))


def check_pyspark_there() -> None:
    """End with a sentence where PySpark is not installed."""
    try:
        import tarry.spark.installed  # noqa: F401
    except ImportError:
        fail(f'PySpark is not installed: pip install "tarry[spark]"{_instead()}')


def _instead() -> str:
    return ", or use --local" if "is_local" in click.get_current_context().params else ""


def _check_installed() -> None:
    """End with a sentence where PySpark, Java or the Python of workers will not do."""
    check_pyspark_there()
    from tarry.spark.installed import check_java, check_pyspark, check_python, check_spark_home

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        check_pyspark()
        if not _is_submitted():
            check_spark_home()
            check_java()
        check_python(os.environ["PYSPARK_PYTHON"])
    except (ImportError, RuntimeError) as error:
        fail(f"{error}{_instead()}")


def java_options(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a driver's Java that keep its start quiet.

    Somebody with a configuration of Spark's own has options and a log there.
    """
    if "SPARK_CONF_DIR" in environment or "SPARK_HOME" in environment:
        return {}
    return {JAVA_OPTIONS: f"-Dlog4j2.configurationFile=file:{LOGGING}"}


def _is_submitted() -> bool:
    """Tell if spark-submit runs this process: its Java is there already, and so is its master."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _started(builder: Any, master: str | None) -> SparkSession:
    try:
        session: SparkSession = builder.getOrCreate()
    except Exception as error:
        # PySpark and its bridge to Java each have classes of their own.
        reason = str(error).strip().rpartition("\n: ")[2].split("\n", 1)[0][:500]
        if "stopped SparkContext" in reason:
            # What is left of the answer that a master did not give.
            reason = "its master does not answer, or gave it up"
        at = f" with --master {master}" if master else ""
        fail(f"Spark did not start{at}: {reason.rstrip('.')}. Its own lines above say more")
    return session
