"""The public names are the sorted list they claim to be, and the version is one."""

import inspect
from importlib.metadata import version
from importlib.resources import files

import pytest

import deniable
from deniable import client, errors, mechanisms, spark, stores, streams

FRONT_DOOR = (
    deniable.Collection,
    deniable.Database,
    deniable.Result,
    client.Client,
    streams.Publisher,
    streams.Released,
)
"""Classes whose methods people call most: every one of these shows how."""


def public_values():
    """Every class and function that has a public name, once."""
    named = {}
    for module in (deniable, client, mechanisms, streams, stores):
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                named[f"{value.__module__}.{name}"] = value
    for name, value in vars(errors).items():
        if inspect.isclass(value):
            named[f"errors.{name}"] = value
    for door in FRONT_DOOR:
        inherited = {name: value for base in door.__mro__[:-1] for name, value in vars(base).items()}
        for name, value in (inherited | dict(vars(door))).items():
            function = getattr(value, "__func__", value)
            if inspect.isfunction(function) and not name.startswith("_"):
                named[f"{door.__name__}.{name}"] = function
    return named


@pytest.mark.parametrize("module", [deniable, client, mechanisms, spark, streams, stores])
def test_all_is_sorted_and_importable(module):
    assert module.__all__ == sorted(module.__all__)
    for name in module.__all__:
        assert getattr(module, name) is not None


def test_mechanisms_lists_every_mechanism():
    defined = {name for name in dir(mechanisms) if isinstance(getattr(mechanisms, name), type)}
    assert defined == set(dir(mechanisms)) == set(mechanisms.__all__)


def test_unknown_names_fail():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        deniable.nonsense  # noqa: B018
    assert set(dir(deniable)) == set(deniable.__all__)


def test_the_version_is_stated_once():
    assert version("deniable") == deniable.__version__


def test_every_error_is_in_the_tree_that_the_module_draws():
    drawn = errors.__doc__
    for name, value in vars(errors).items():
        if isinstance(value, type) and issubclass(value, Exception):
            assert issubclass(value, errors.DeniableError)
            assert name in drawn
            assert value.exit_code == (2 if issubclass(value, errors.BadInput) else 1)


@pytest.mark.parametrize("name", sorted(public_values()))
def test_every_public_name_has_an_example_that_runs(name):
    value = public_values()[name]
    assert ">>> " in (value.__doc__ or "")  # pytest runs it with the doctests of its module
    assert value.__module__.startswith("deniable.")


def test_type_hints_are_published():
    assert (files("deniable") / "py.typed").is_file()


def test_public_methods_say_what_they_give_back():
    for name, value in public_values().items():
        if inspect.isfunction(value):
            given = inspect.signature(value)
            assert given.return_annotation is not inspect.Signature.empty, name
            assert given.return_annotation != "Any" or name.endswith(("to_pandas", "to_polars", "plot")), name
