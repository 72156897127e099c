"""What the division of an answer leaves over: the value as in SQL, and an interval that holds every rest."""

import numpy as np
import pytest

from deniable.queries.question.formula import Applied, Number


@pytest.mark.parametrize("divisor", [7.0, -7.0, 2.5])
def test_intervals_hold_the_rest_of_every_number_between(divisor):
    random = np.random.default_rng(3)
    low = random.uniform(-30, 30, 2_000)
    low[:400] = np.rint(low[:400] / divisor) * divisor  # also from one multiple on
    high = low + random.exponential(3, low.size) * (random.random(low.size) < 0.9)
    rest = Applied("mod", Number(0.0), divisor)
    least, most = rest.of_interval(low, high)
    for share in np.linspace(0, 1, 21):
        values = rest.at(low + share * (high - low))
        assert np.all((least - 1e-9 <= values) & (values <= most + 1e-9))
    assert np.all(most - least <= 2 * abs(divisor))


def test_a_rest_has_the_sign_of_what_is_divided_and_near_multiples_have_none():
    rest = Applied("mod", Number(0.0), 7.0)
    assert rest.at(np.array([9.0, -9.0, 14.0 - 1e-12, 0.0])).tolist() == [2.0, -2.0, 0.0, 0.0]
    assert [end.tolist() for end in rest.of_interval(np.array([-np.inf, 1.0]), np.array([3.0, np.inf]))] == [
        [-7, 0],
        [7, 7],
    ]
