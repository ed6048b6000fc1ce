"""Texts for users name pages and packages that they can reach."""

from __future__ import annotations

from eos_sink.published import as_published

REPOSITORY = "https://github.com/a/b"


def test_a_release_links_to_the_pages_of_its_version() -> None:
    text = "See docs/options.md#eosid (docs/internals/proof.md), or docs/."
    there = f"{REPOSITORY}/blob/v1.0.0/docs"
    shown = f"See {there}/options.md#eosid ({there}/internals/proof.md), or docs/."
    assert as_published(text, REPOSITORY, "1.0.0") == shown
    assert as_published(shown, REPOSITORY, "1.0.0") == shown
    assert as_published(text, REPOSITORY, "1.1.0.dev0") == shown.replace("v1.0.0", "HEAD")
    assert as_published(text, "") == text


def test_until_it_is_published_pip_gets_the_wheel_of_a_clone() -> None:
    text = "Run: /opt/python -m pip install --upgrade eos-sink"
    assert as_published(text, REPOSITORY) == text
    wheel = as_published(text, "").removeprefix("Run: /opt/python -m pip install --upgrade ")
    assert wheel == "eos_sink-*.whl, which 'pip wheel --no-deps .' makes in a clone of it"
    # Of what is installed pip needs no file for an extra.
    extra = "pip install 'eos-sink[cli]'"
    assert as_published(extra, "") == extra
