"""Session settings that are defaults of a query's options.

`spark.datasource.kafka-eos.NAME` is the default of option NAME, as for sources in Java
(SessionConfigSupport). Spark passes no settings to a source in Python, so `register` puts them into
the class that it registers. Without `register`, tasks see the settings too late to apply them, but
early enough to refuse the write: a setting that is silently ignored could mean another topic.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from eos_sink.identity import SESSION_PREFIX


@dataclass(frozen=True)
class Defaults:
    """The defaults of a session.

    Attributes:
        values: by option name, in lower case; may contain secrets, so they are left out of repr.
    """

    values: Mapping[str, str] = field(default_factory=dict, repr=False)

    @staticmethod
    def of_settings(settings: Mapping[str, str]) -> Defaults:
        """The defaults among all settings of a session.

        Raises:
            ConfigurationError: two settings that differ only in case have different values.
        """
        values: dict[str, str] = {}
        for setting, value in settings.items():
            if setting.startswith(SESSION_PREFIX):
                name = setting.removeprefix(SESSION_PREFIX).lower()
                if values.setdefault(name, value) != value:
                    from eos_sink.messages import Reason, stop

                    raise stop(Reason.DEFAULT_TWICE, setting=f"{SESSION_PREFIX}{name}")
        return Defaults(values)

    def fill_in(self, options: Mapping[str, str]) -> dict[str, str]:
        """The options, with defaults for those that are not given."""
        return {**self.values, **{name.lower(): value for name, value in options.items()}}

    def check_applied(self, given: Iterable[str], settings: Mapping[str, str]) -> None:
        """Check that these defaults were made from the session's settings.

        Args:
            given: names of the query's own options, which override any default.
            settings: the session's, as a task sees them.

        Raises:
            ConfigurationError: names the settings that were not applied, without values.
        """
        stated = {name.lower() for name in given}
        session = Defaults.of_settings(settings).values
        ignored = sorted(
            f"{SESSION_PREFIX}{name}"
            for name, value in session.items()
            if name not in stated and self.values.get(name) != value
        )
        if ignored:
            from eos_sink.messages import Reason, stop

            raise stop(Reason.DEFAULTS_NOT_APPLIED, ignored=", ".join(ignored))
