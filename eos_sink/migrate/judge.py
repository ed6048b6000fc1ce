"""What the sink says of the options of a query.

Whether it accepts them is tried (`eos_sink.migrate.trial`). The tables of `eos_sink.options` and
`eos_sink.kafka_settings` tell what becomes of what is accepted.
"""

from __future__ import annotations

from collections.abc import Sequence

from eos_sink.errors import ConfigurationError
from eos_sink.identity import query_origin
from eos_sink.kafka_settings import Fate, is_known, is_secret, judge, setting
from eos_sink.migrate.calls import of_calls
from eos_sink.migrate.model import Finding, Given, Query, Verdict
from eos_sink.migrate.trial import ANY_TEXT, IDENTITY, Trial, try_options
from eos_sink.options import Kind, kind_of

HIDDEN = "***"

_KAFKA = "kafka."
_FATES = {
    Fate.SAME: Verdict.SAME,
    Fate.OWNED: Verdict.SAME,
    Fate.TRANSLATED: Verdict.TRANSLATED,
    Fate.IGNORED: Verdict.IGNORED,
}


def of_query(query: Query, defaults: Sequence[Given] = ()) -> list[Finding]:
    """What is said of each call and option of a query, and of what it lacks.

    Options alone lack nothing: their query may give the rest, see `lacking_of`.

    Args:
        query: the query.
        defaults: options that the session gives where the query does not.
    """
    last = {_key(given): given for given in query.options}
    trial = try_options(query, last, defaults)
    found = list(of_calls(query))
    for given in query.options:
        holds = last[_key(given)]
        if given.name is not None and holds is not given:
            found.append(_finding(given, Verdict.IGNORED, f"It is given again: {holds.place}."))
        else:
            found.append(_of_option(given, trial))
    if query.way.writes:
        found += [
            Finding(name, "", query.place, Verdict.MISSING, _said(error))
            for name, error in trial.lacking.items()
        ]
    return found


def lacking_of(query: Query) -> list[str]:
    """Names of options that a query needs and does not show."""
    return sorted(try_options(query, {_key(given): given for given in query.options}).lacking)


def _of_option(given: Given, trial: Trial) -> Finding:
    if given.name is None:
        return _finding(given, Verdict.UNREAD, f"{given.unread}.")
    error, conversion = trial.errors.get(_key(given)), trial.absent.get(_key(given))
    if error is not None:
        return _not_accepted(given, given.name, error)
    if conversion is not None:
        note = f"The file is not here. PKCS#12 and PEM are read, JKS is refused. {conversion}"
        return _finding(given, Verdict.UNREAD, note)
    kind = kind_of(given.name)
    if kind is Kind.KAFKA:
        value = ANY_TEXT if given.value is None else given.value
        judgement = judge(given.name.lower().removeprefix(_KAFKA), value)
        return _finding(given, _FATES[judgement.fate], judgement.note)
    own = kind is Kind.OWN or given.name.lower() in IDENTITY
    return _finding(given, Verdict.SAME if own else Verdict.IGNORED)


def _not_accepted(given: Given, name: str, error: ConfigurationError) -> Finding:
    kind = kind_of(name)
    if kind is Kind.UNKNOWN or (kind is Kind.KAFKA and not _known(name)):
        return _finding(given, Verdict.UNKNOWN, _said(error))
    if given.value is None:
        return _finding(given, Verdict.UNREAD, f"{given.unread}.")
    return _finding(given, Verdict.REFUSED, _said(error), superfluous=_owned(name))


def _finding(
    given: Given, verdict: Verdict, note: str = "", *, superfluous: bool = False
) -> Finding:
    if given.unread and verdict is not Verdict.UNREAD:
        note = f"Any value will do; this one cannot be read here: {given.unread}. {note}".strip()
    shown = _shown(given, verdict)
    return Finding(given.name or "?", shown, given.place, verdict, note, superfluous)


def _shown(given: Given, verdict: Verdict) -> str:
    """The value, unless it is, or may be, a secret."""
    if given.name is None or given.value is None:
        return ""
    name = given.name.lower()
    unknown = verdict is Verdict.UNKNOWN or (name.startswith(_KAFKA) and not _known(name))
    if unknown or is_secret(name.removeprefix(_KAFKA)):
        return HIDDEN
    if name == "checkpointlocation":
        return query_origin(None, given.value, None).checkpoint or ""
    return given.value


def _said(error: ConfigurationError) -> str:
    return f"{error.message} {error.remedy}".removesuffix(" Nothing was written.")


def _key(given: Given) -> str:
    return (given.name or "").lower()


def _known(name: str) -> bool:
    return is_known(name.lower().removeprefix(_KAFKA))


def _owned(name: str) -> bool:
    row = setting(name.lower().removeprefix(_KAFKA))
    return kind_of(name) is Kind.REFUSED or (row is not None and row.fate is Fate.OWNED)
