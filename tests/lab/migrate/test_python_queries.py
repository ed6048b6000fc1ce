"""A Python file is read without being run; a value that is not plain is reported, not guessed."""

from __future__ import annotations

import textwrap

import pytest

from eos_sink_lab.migrate.python_queries import read_python
from eos_sink_lab.migrate.queries import Given, Query, Source, Way


def read(text: str) -> Source:
    return read_python(textwrap.dedent(text), "job.py")


def only(text: str) -> Query:
    (query,) = read(text).queries
    return query


def shown(givens: tuple[Given, ...]) -> dict[str | None, str | None]:
    return {given.name: given.value for given in givens}


def value_of(expression: str, before: str = "") -> Given:
    text = textwrap.dedent(before) + f'\nd.writeStream.format("kafka").option("o", {expression})\n'
    (given,) = only(text).options
    return given


def test_a_chain_is_read_with_its_lines() -> None:
    query = only(
        """
        query = (
            rows.writeStream
            .format("kafka")
            .outputMode("append")
            .option("topic", "t")
            .options(a="b", **{"kafka.x": 1, "c": True})
            .trigger(processingTime="5 seconds")
            .queryName("q")
            .start()
        )
        """
    )
    assert query.way is Way.STREAM
    assert query.place.line == 3
    assert shown(query.options) == {"topic": "t", "a": "b", "kafka.x": "1", "c": "true"}
    assert shown(query.calls) == {
        "format": "kafka",
        "outputMode": "append",
        "trigger.processingTime": "5 seconds",
        "queryName": "q",
    }
    assert [given.place.line for given in query.options] == [6, 7, 7, 7]


@pytest.mark.parametrize(
    ("expression", "before", "value"),
    [
        ("'a' 'b'", "", "ab"),
        ("X", "X = 'a'", "a"),
        ("X", "X: str = 'a'", "a"),
        ("X", "Y = 'a'\nX = Y + 'b'", "ab"),
        ("f'{X}:{Y}'", "X = 'h'; Y = 9092", "h:9092"),
        ("str(X)", "X = 5", "5"),
        ("-1", "", "-1"),
        ("1.5", "", "1.5"),
        ("False", "", "false"),
        ("C['k']", "C = {'k': 'v', 'l': f()}", "v"),
        ("X", "if a:\n    X = 'a'", "a"),
        ("X", "def f(X):\n    X = 'b'\nX = 'a'", "a"),
        ("X", "from f import *\nX = 'a'", "a"),
    ],
)
def test_what_is_plain_is_read(expression: str, before: str, value: str) -> None:
    assert value_of(expression, before).value == value


@pytest.mark.parametrize(
    ("expression", "before", "why"),
    [
        ("os.environ['X']", "", "os.environ[...] is known only when the program runs"),
        ("f('secret')", "", "f(...) is known only when the program runs"),
        ("a or 'b'", "", "an expression is known only when"),
        ("X", "", "X is not set in this file"),
        ("X", "X = 'a'\nX = 'b'", "X is set more than once: lines 1, 2"),
        ("X", "X = 'a'\nX += 'b'", "X is set more than once"),
        ("X", "X = 'a'\ndef f():\n    global X\n    X = 'b'", "X is set more than once"),
        ("X", "X = 'a'\ndel X", "X is set more than once"),
        ("X", "X = X", "it is defined by itself"),
        ("X", "X, Y = 'ab'", "X is known only when the program runs: line 1"),
        ("X", "import X", "X is known only when the program runs"),
        ("X", "for X in 'ab': pass", "X is known only when the program runs"),
        ("X", "with open('f') as X: pass", "X is known only when the program runs"),
        ("X", "def X(): pass", "X is known only when the program runs"),
        ("X", "[(X := 'a') for _ in 'b']", "X is known only when the program runs"),
        ("X", "match f():\n    case {**X}: pass", "X is known only when the program runs"),
        ("X", "try: f()\nexcept E as X: pass", "X is known only when the program runs"),
        ("X", "X = 'a'\nfrom f import *", "X may come from an import of *"),
        ("f'{1:5}'", "", "known only when the program runs"),
        ("C['k']", "C = {'k': 'v', **f()}", "C[...] is known only when the program runs"),
        ("C['k']", "C = {'k': 'v'}\nC['k'] = 'w'", "C[...] is known only when the program runs"),
        ("None", "", "None is no value"),
    ],
)
def test_what_is_not_plain_is_not_guessed(expression: str, before: str, why: str) -> None:
    given = value_of(expression, before)
    assert given.value is None
    assert why in given.unread
    assert "secret" not in given.unread


def test_a_parameter_hides_a_constant() -> None:
    query = only(
        """
        TOPIC = "a"
        def start(rows, TOPIC):
            rows.writeStream.format("kafka").option("topic", TOPIC).start()
        """
    )
    assert query.options[0].value is None


def test_a_class_hides_nothing_from_its_methods() -> None:
    query = only(
        """
        TOPIC = "a"
        class Job:
            TOPIC = "b"
            def start(self, rows):
                rows.writeStream.format("kafka").option("topic", TOPIC).start()
        """
    )
    assert query.options[0].value == "a"


def test_arguments_of_start_by_position() -> None:
    query = only("d.writeStream.start(None, 'kafka', None, None, 'q')")
    assert shown(query.calls) == {"format": "kafka", "queryName": "q"}
    assert query.options == ()


def test_a_local_constant_is_read() -> None:
    query = only(
        """
        def main():
            topic = "a"
            def inner(rows):
                nonlocal_ = 1
                rows.writeStream.format("kafka").option("topic", topic).start()
        """
    )
    assert query.options[0].value == "a"


def test_nonlocal_is_another_binding() -> None:
    query = only(
        """
        def main(rows):
            topic = "a"
            def change():
                nonlocal topic
                topic = "b"
            rows.writeStream.format("kafka").option("topic", topic).start()
        """
    )
    assert "lines 3, 6" in query.options[0].unread


@pytest.mark.parametrize(
    ("before", "names"),
    [
        ("O = {'a': '1', 'b': '2'}", ["a", "b"]),
        ("O = dict(a='1', **{'b': 'x'})", ["a", "b"]),
        ("P = {'a': '1'}\nO = {**P, 'b': '2'}", ["a", "b"]),
        ("P = {'a': '1'}\nO = P | {'b': '2'}", ["a", "b"]),
        ("P = {'a': '1'}\nO = P.copy()\nO['b'] = '2'", ["a", "b"]),
        ("O = {'a': '1'}\nO['b'] = '2'\nprint(O, len(O), O['a'], 'a' in O, f'{O}')", ["a", "b"]),
        ("O = {'a': '1'}\nO.update(b='2')", ["a", None]),
        ("O = {'a': '1'}\nO |= f()", [None]),
        ("O = {'a': '1'}\nfill(O)", ["a", None]),
        ("O = {'a': '1'}\nP = O", ["a", None]),
        ("O = {'a': '1'}\ndel O['a']", ["a", None]),
        ("O = {'a': '1', f(): '2'}", ["a", None]),
        ("O = load()", [None]),
        ("O = {**O}", [None]),
    ],
)
def test_options_of_a_dictionary(before: str, names: list[str | None]) -> None:
    text = f"{before}\nd.writeStream.format('kafka').options(**O).start()\n"
    assert [given.name for given in only(text).options] == names


def test_a_writer_may_be_kept_in_a_variable() -> None:
    query = only(
        """
        writer = rows.writeStream.format("kafka")
        writer = writer.option("topic", "t")
        if fast:
            writer.option("kafka.acks", "1")
        for key, value in more.items():
            writer.option(key, value)
        query = writer.start()
        query.awaitTermination()
        """
    )
    assert [given.name for given in query.options] == ["topic", "kafka.acks", None]


def test_each_query_of_a_file_is_distinguished() -> None:
    source = read(
        """
        a.writeStream.format("kafka").option("topic", "a").start()
        b.writeStream.format("console").start()
        with open("x") as f:
            f.write("kafka.")
        spark.readStream.format("kafka").option("kafka.bootstrap.servers", "b").load()
        c.write.format("kafka").option("topic", "c").mode("append").save()
        d.writeStream.start(format="kafka", topic="d", outputMode="update")
        e.writeStream.format("kafka-eos").option("topic", "e").start()
        f.writeStream.format(chosen).option("kafka.bootstrap.servers", "b").start()
        g.writeStream.format(chosen).option("path", "b").start()
        """
    )
    assert [(query.place.line, query.way) for query in source.queries] == [
        (2, Way.STREAM),
        (7, Way.BATCH),
        (8, Way.STREAM),
        (9, Way.STREAM),
        (10, Way.STREAM),
    ]
    assert shown(source.queries[1].calls) == {"format": "kafka", "mode": "append"}
    assert shown(source.queries[2].calls) == {"format": "kafka", "outputMode": "update"}
    assert shown(source.queries[2].options) == {"topic": "d"}


def test_a_function_with_the_name_of_a_method_is_no_query() -> None:
    assert read("option('kafka.acks', '1')\noptions(1)\nformat('kafka')").queries == ()


def test_a_writer_may_be_kept_in_two_variables() -> None:
    query = only("a = d.writeStream.format('kafka')\nb = a.option('x', 1)\nb.option('y', 2)")
    assert shown(query.options) == {"x": "1", "y": "2"}


def test_options_whose_writer_is_elsewhere_are_read_too() -> None:
    source = read(
        """
        def configured(writer):
            return writer.option("kafka.acks", "1")
        reader = spark.readStream.format("kafka")
        reader = reader.option("kafka.bootstrap.servers", "b")
        """
    )
    assert [(query.way, query.place.line) for query in source.queries] == [(Way.OPTIONS, 3)]


def test_a_write_inside_foreach_batch_is_known_as_one() -> None:
    source = read(
        """
        def each(frame, number):
            frame.write.format("kafka").option("topic", "a").mode("append").save()
        rows.writeStream.foreachBatch(each).start()
        rows.writeStream.foreachBatch(lambda f, n: f.write.format("kafka").save()).start()
        rows.write.format("kafka").save()
        """
    )
    assert [query.inside for query in source.queries] == ["each", "lambda", ""]


@pytest.mark.parametrize(
    "call",
    [
        "dp.create_sink('out', 'kafka', {'topic': 't', 'kafka.acks': ACKS})",
        "create_sink(name='out', options={'topic': 't', 'kafka.acks': ACKS}, format='kafka')",
    ],
)
def test_a_sink_of_a_pipeline_is_read(call: str) -> None:
    query = only(f"ACKS = '1'\n{call}\ndp.create_sink('other', 'console')")
    assert query.way is Way.PIPELINE
    assert shown(query.calls) == {"format": "kafka"}
    assert shown(query.options) == {"topic": "t", "kafka.acks": "1"}


def test_settings_of_the_session_are_read() -> None:
    source = read(
        """
        spark = SparkSession.builder.config("spark.speculation", True).getOrCreate()
        spark.conf.set("spark.sql.streaming.checkpointLocation", where)
        names.set("other", 1)
        """
    )
    assert shown(source.session) == {
        "spark.speculation": "true",
        "spark.sql.streaming.checkpointLocation": None,
    }


def test_values_are_not_in_a_repr() -> None:
    assert "hunter2" not in repr(value_of("'hunter2'"))


def test_nothing_is_run() -> None:
    read("raise SystemExit(3)\nd.writeStream.format('kafka').option('a', 1/0).start()")
