"""A migrated file differs from its input only in the changes that are certainly needed."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eos_sink.kafka_config.properties_file import read_properties
from eos_sink_lab.migrate.assess import assess_query, for_spark35
from eos_sink_lab.migrate.edits import (
    diff_python,
    edit_options_file,
    edit_python,
    write_options_file,
)
from eos_sink_lab.migrate.python_queries import read_python
from eos_sink_lab.migrate.queries import Finding, Verdict, read_options_file, read_pairs


def found(text: str) -> list[Finding]:
    return [f for query in read_python(text, "job.py").queries for f in assess_query(query)]


def python(text: str) -> str:
    text = textwrap.dedent(text)
    return edit_python(text, found(text))


def test_a_python_file_changes_its_one_word_and_loses_what_the_sink_sets_itself() -> None:
    assert python(
        """
        # "kafka" here is a comment, and é is two bytes.
        rows = spark.readStream.format("kafka").option("kafka.acks", "1").load()
        é = (
            rows.writeStream.format('kafka')  # once
            .option("kafka.bootstrap.servers", "é:1").option("kafka.acks", "1")
            .option("topic", "kafka")
            .option("kafka.enable.idempotence", "false")
            .start()
        )
        """
    ) == textwrap.dedent(
        """
        # "kafka" here is a comment, and é is two bytes.
        rows = spark.readStream.format("kafka").option("kafka.acks", "1").load()
        é = (
            rows.writeStream.format('kafka-eos')  # once
            .option("kafka.bootstrap.servers", "é:1")
            .option("topic", "kafka")
            .start()
        )
        """
    )


@pytest.mark.parametrize(
    "text",
    [
        "F = 'kafka'\nd.writeStream.format(F).option('kafka.x', '1').start()\n",
        "d.writeStream.format('kaf' 'ka').start()\n",
        "d.writeStream.options(**{'kafka.acks': '1'}).start(format='kafka')\n",
        "(d.writeStream.format(chosen)).option('kafka.acks', '1').start()\n",
        "(d.writeStream.format(chosen)  # ours\n.option('kafka.acks', '1').start())\n",
    ],
)
def test_what_is_not_simple_is_left_to_the_user(text: str) -> None:
    assert python(text) == text


def test_only_the_calls_of_the_writer_are_touched() -> None:
    reader = "s.readStream.format('kafka').option('kafka.acks', '1').load()"
    rest = ".queryName(T.format('kafka')).start()\n"
    text = f"{reader}.writeStream.format('kafka').option('kafka.acks', '1'){rest}"
    assert python(text) == f"{reader}.writeStream.format('kafka-eos'){rest}"


def test_a_comment_is_never_lost() -> None:
    text = "(d.writeStream.format('kafka')  # why\n.option('kafka.acks', '1').start())\n"
    assert python(text) == text.replace("'kafka')", "'kafka-eos')")


def test_line_ends_stay_as_they_are() -> None:
    text = "(d.writeStream\r\n.format('kafka')\r\n.option('kafka.acks', '1')\r\n.start())\r\n"
    assert python(text) == "(d.writeStream\r\n.format('kafka-eos')\r\n.start())\r\n"


def test_a_continued_line_stays_whole() -> None:
    text = "d.writeStream.format('kafka') \\\n  .option('kafka.acks', '1') \\\n  .start()\n"
    assert python(text) == "d.writeStream.format('kafka-eos') \\\n  .start()\n"


def python_for_spark35(text: str) -> tuple[str, bool]:
    """The migrated text, and whether no action is needed."""
    queries = read_python(text, "job.py").queries
    findings = [f for query in queries for f in for_spark35(query, assess_query(query))]
    return edit_python(text, findings), all(finding.verdict.fine for finding in findings)


def test_for_spark_35_a_plain_write_becomes_a_call_that_has_its_options() -> None:
    text = textwrap.dedent(
        """
        from __future__ import annotations

        from pyspark.sql import DataFrame

        def write(batch: DataFrame, number: int) -> None:
            batch.cache()
            (
                batch.select("value")
                .write.format("kafka")
                .option("kafka.bootstrap.servers", servers or "b:1")
                .option("kafka.acks", "1")
                .option("kafka.linger.ms", 5)
                .option("kafka.transactional.id", named())
                .options(topic="é", **(more or {}))
                .mode("append")
                .save()
            )  # done

        rows.writeStream.foreachBatch(write).start()
        """
    )
    head, tail = text[: text.index("    (\n")], text[text.index("  # done") :]
    migrated, _ = python_for_spark35(text)
    assert migrated == (
        head.replace("from pyspark", "import eos_sink\nfrom pyspark") + "    (\n        "
        "eos_sink.write(batch.select('value'), {'kafka.bootstrap.servers': servers or 'b:1', "
        "'kafka.linger.ms': '5', 'kafka.transactional.id': named(), 'topic': 'é', "
        "**(more or {})})\n    )" + tail
    )
    assert python_for_spark35(migrated)[0] == migrated


@pytest.mark.parametrize("mode", ["", ".mode('append')", ".mode('errorifexists')"])
def test_for_spark_35_a_write_needs_no_mode(mode: str) -> None:
    options = ".option('kafka.bootstrap.servers', 'b:1').option('topic', 't')"
    text = f"import eos_sink\nf.write.format('kafka'){options}{mode}.save()\n"
    assert python_for_spark35(text) == (
        "import eos_sink\neos_sink.write(f, {'kafka.bootstrap.servers': 'b:1', 'topic': 't'})\n",
        True,
    )


@pytest.mark.parametrize(
    "text",
    [
        "w = f.write.format('kafka')\nw.mode('append').save()\n",
        "f.write.format('kafka').option('topic', *more).save()\n",
        "f.write.format('kafka').partitionBy('x').save()\n",
        "(f.write.format('kafka')  # why\n.save())\n",
        "f.writeStream.format('kafka').outputMode('update').start()\n",
    ],
)
def test_for_spark_35_what_is_not_simple_needs_the_user(text: str) -> None:
    options = ".option('kafka.bootstrap.servers', 'b:1').option('eos.id', 'q')"
    text = text.replace("('kafka')", f"('kafka'){options}", 1)
    assert python_for_spark35(text) == (text, False)
    (query,) = read_python(text, "job.py").queries
    refused = [f for f in for_spark35(query, assess_query(query)) if f.verdict is Verdict.REFUSED]
    assert [finding.name for finding in refused] == ["format"]
    assert "eos_sink.foreach_batch(options)" in refused[0].note


GAPS = st.sampled_from(["", " ", "\n", "\\\n", "  # why\n", "\r\n", "\t", "\f"])
CALLS = st.sampled_from(
    [
        "format('kafka')",
        'format(\n"Kafka" )',
        "format('kaf' 'ka')",
        "format(F)",
        "option('kafka.acks', '1')",
        "option( 'kafka.acks' ,\n'1' )",
        "option('kafka.acks', '# 1')",
        "option(key='kafka.acks', value='1')",
        "option('kafka.transactional.id', f('é'))",
        "option('topic', 'é')",
    ]
)


@given(st.lists(st.tuples(GAPS, CALLS, GAPS, st.booleans()), max_size=8))
def test_an_edited_file_has_the_same_queries_but_for_its_edits(
    calls: list[tuple[str, str, str, bool]],
) -> None:
    chain = "é.writeStream"
    for before, call, after, enclosed in calls:
        chain = f"({chain}){before}.{after}{call}" if enclosed else f"{chain}{before}.{after}{call}"
    # An option for Kafka makes it a query for Kafka, whatever the format.
    text = f"F = 'kafka'; x = '\f'\nquery = ({chain}.option('kafka.linger.ms', '5'))\n"
    findings = found(text)
    made = {finding.edit for finding in findings if finding.edit}
    old, new = read_python(text, "f"), read_python(edit_python(text, findings), "f")
    assert [(given.name, given.value) for query in new.queries for given in query.options] == [
        (given.name, given.value)
        for query in old.queries
        for given in query.options
        if given.edit not in made
    ]
    assert [given.value for query in new.queries for given in query.calls] == [
        "kafka-eos" if given.edit in made else given.value
        for query in old.queries
        for given in query.calls
    ]


def test_a_diff_shows_the_changed_lines_only() -> None:
    text = "d = 1\n(r.writeStream\n.format('kafka')\n.option('kafka.acks', '1')\n.start())\n"
    shown = diff_python(text, python(text), "job.py", found(text))
    assert shown.splitlines()[:2] == ["--- job.py", "+++ job.py (migrated)"]
    assert [line for line in shown.splitlines()[2:] if line[0] != "@"] == [
        "-.format('kafka')",
        "-.option('kafka.acks', '1')",
        "+.format('kafka-eos')",
    ]


@pytest.mark.parametrize(
    "secret",
    [
        ".option('kafka.sasl.password', 'hunter2')",
        ".option('kafka.sasl.password', f'hunter2{x}')",
        ".option('pasword', 'hunter2')",
        ".option(f(), 'hunter2')",
    ],
)
def test_a_diff_with_what_may_be_a_secret_is_not_shown(secret: str) -> None:
    # A form feed ends no line for Python.
    text = f"# \f page\nr.writeStream.format('kafka'){secret}.start()\n"
    assert python(text) != text
    assert diff_python(text, python(text), "job.py", found(text)) == ""


def test_a_properties_file_keeps_all_but_what_the_sink_sets_itself() -> None:
    text = "# mine\r\ntopic: t\r\nkafka.acks \\\r\n  1\r\nkafka.linger.ms=5\r\ntopics=x"
    (query,) = read_options_file(text, "f").queries
    assert edit_options_file(text, assess_query(query)) == (
        "# mine\r\ntopic: t\r\n# eos-sink migrate: kafka.acks \\\r\n# eos-sink migrate:   1\r\n"
        "kafka.linger.ms=5\r\ntopics=x"
    )


def test_pairs_become_a_properties_file() -> None:
    pairs = ["topic=t", "kafka.acks=1", "kafka.sasl.password= a=b\\c", "spark.x=1"]
    source = read_pairs([*pairs, "spark.datasource.kafka-eos.eos.id=q"])
    written = write_options_file(
        source, [f for query in source.queries for f in assess_query(query)]
    )
    assert written == (
        "topic=t\nkafka.sasl.password=\\ a=b\\\\c\nspark.datasource.kafka-eos.eos.id=q\nspark.x=1\n"
    )
    again = read_options_file(written, "f")
    assert [given.value for given in again.queries[0].options] == ["t", " a=b\\c"]


@given(st.text(min_size=1), st.text())
def test_what_is_written_is_read_again(name: str, value: str) -> None:
    from eos_sink.kafka_config.properties_file import format_property

    (entry,) = read_properties(format_property(name, value))
    assert (entry.name, entry.value) == (name, value.rstrip())
