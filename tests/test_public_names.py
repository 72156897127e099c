"""The public names are the sorted list they claim to be, and the version is one."""

from importlib.metadata import version

import pytest

import deniable
from deniable import errors, mechanisms, streams


@pytest.mark.parametrize("module", [deniable, mechanisms, streams])
def test_all_is_sorted_and_importable(module):
    assert module.__all__ == sorted(module.__all__)
    for name in module.__all__:
        assert getattr(module, name) is not None


def test_mechanisms_lists_every_mechanism():
    defined = {name for name, value in vars(mechanisms).items() if isinstance(value, type)}
    assert defined == set(mechanisms.__all__)


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
