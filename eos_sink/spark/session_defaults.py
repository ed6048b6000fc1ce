"""Settings of the session that stand for options that a query was not given.

`spark.datasource.kafka-eos.NAME` is the default of option NAME, as Spark has it for sources in Java
(SessionConfigSupport). Spark hands no setting to a source in Python, so `register` bakes them into
the class that it registers. Where nobody called it, tasks see the settings too late to use them,
but not too late to refuse: a setting that is ignored in silence could mean another topic.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from eos_sink.errors import ConfigurationError
from eos_sink.options import SESSION_PREFIX


@dataclass(frozen=True)
class Defaults:
    """The defaults of a session.

    Attributes:
        values: by the names of the options, in lower case; may hold secrets, so they are left out
            of repr.
    """

    values: Mapping[str, str] = field(default_factory=dict, repr=False)

    @staticmethod
    def of_settings(settings: Mapping[str, str]) -> Defaults:
        """Those among all settings of a session.

        Raises:
            ConfigurationError: one name is there twice, in capitals and not, with two values.
        """
        values: dict[str, str] = {}
        for setting, value in settings.items():
            if setting.startswith(SESSION_PREFIX):
                name = setting.removeprefix(SESSION_PREFIX).lower()
                if values.setdefault(name, value) != value:
                    raise ConfigurationError(
                        f"{SESSION_PREFIX}{name} is set twice, with two values: capitals make no "
                        "difference in it.",
                        remedy="Set it once. Nothing was written.",
                    )
        return Defaults(values)

    def under(self, options: Mapping[str, str]) -> dict[str, str]:
        """The options, and the defaults of those that are not among them."""
        return {**self.values, **{name.lower(): value for name, value in options.items()}}

    def check_applied(self, given: Iterable[str], settings: Mapping[str, str]) -> None:
        """Refuse to write where the session's settings are not what these defaults were made from.

        Args:
            given: names of the options that the query was given, which override any default.
            settings: the session's, as a task sees them.

        Raises:
            ConfigurationError: names what was not applied, without values.
        """
        stated = {name.lower() for name in given}
        session = Defaults.of_settings(settings).values
        ignored = sorted(
            f"{SESSION_PREFIX}{name}"
            for name, value in session.items()
            if name not in stated and self.values.get(name) != value
        )
        if ignored:
            raise ConfigurationError(
                f"The session sets {', '.join(ignored)}, which this query was started without.",
                remedy="Call eos_sink.register(spark) after they are set and before the query "
                "starts: Spark hands no setting to a data source in Python. Nothing was written.",
            )
