"""The verb table and the operations behind it agree."""

from importlib import import_module

import pytest

from coordinate_agents.graph.operations.table import VERBS, Verb, verb_named


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_every_parameter_is_a_field_of_the_request_and_every_field_a_parameter(verb: Verb) -> None:
    module = import_module(verb.module)
    assert set(module.Request.__annotations__) == {param.field for param in verb.params}
    assert callable(module.execute)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_a_verb_is_found_under_its_name_and_without_the_prefix(verb: Verb) -> None:
    assert verb_named(verb.name) is verb
    assert verb_named(verb.short_name) is verb


def test_no_two_verbs_share_a_name() -> None:
    names = [name for verb in VERBS for name in {verb.name, verb.short_name}]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_optional_words_never_stand_before_required_ones(verb: Verb) -> None:
    required = [param.required for param in verb.params if param.positional]
    assert required == sorted(required, reverse=True)
