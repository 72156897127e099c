"""ε-LDP of the complete client, by enumeration: every outcome of every draw, for pairs of values and both phases."""

from fractions import Fraction

import numpy as np
import pytest

from agreement import agrees
from deniable.client import ToPLClient
from deniable.exact import exp_below
from deniable.randomness import SeededSource
from deniable.streams.local.simulated_stream import first_codes, second_codes
from deniable.streams.local.stream_protocol import ToPLProtocol
from deniable.streams.local.stream_report import FIRST, StreamReport
from tables.enumeration import EnumeratedDevice, EnumeratedSource, law_of

VALUES = (-3.0, 0.0, 0.4, 1.0, 2.5, 3.0, 7.0, 10.0, 11.0, float("nan"), None)
MODULES = [
    f"mechanisms.{name}" for name in ("hybrid", "piecewise", "randomized_response", "stochastic_rounding", "_window")
]
MODULES.append("streams.local.stream_client")
THETAS = (None, 3.0, 10.0)


class EnumeratedBulk(EnumeratedSource):
    """Also coins of one probability, and coins of 64-bit thresholds."""

    def bernoulli(self, chance, size):
        return np.array([bool(self.choose([1 - Fraction(chance), Fraction(chance)])) for _ in range(size)], dtype=bool)

    def coins(self, thresholds):
        chances = [Fraction(int(threshold), 2**64) for threshold in thresholds]
        return np.array([bool(self.choose([1 - chance, chance])) for chance in chances], dtype=bool)


@pytest.fixture
def transcript(monkeypatch):
    """The law of everything a client sends when it is asked several times.

    Which draws were asked for, and in which order, must not depend on the value nor on the answer. (The hybrid
    mechanism's answer tells which of its two parts it comes from, and they draw differently.)
    """
    draws, dice = {}, EnumeratedDevice()
    dice.stand_in(monkeypatch, *MODULES)

    def law(value, asked, **settings):
        def run(choose):
            dice.begin(choose)
            client = ToPLClient(bound=10, grid=5, randbelow=dice.randbelow, **settings)
            reports = [client.report(value, theta) for theta in asked]
            parts = asked[0] is not None and settings.get("mechanism", "hybrid") == "hybrid" and reports[0].y < 2
            public = (*settings.items(), *asked, parts, reports[0].phase)
            assert draws.setdefault(public, dice.asked) == dice.asked
            return b"".join(report.to_bytes() for report in reports)

        return law_of(run)

    return law


def worst(laws):
    """The largest ratio of two probabilities of one outcome; all outcomes must be possible under all laws."""
    outcomes = set().union(*laws)
    assert all(set(law) == outcomes for law in laws)
    return max(max(law[outcome] for law in laws) / min(law[outcome] for law in laws) for outcome in outcomes)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("theta", THETAS)
def test_each_phase_is_exactly_epsilon_private(transcript, epsilon, theta):
    laws = [transcript(value, [theta], epsilon=epsilon) for value in VALUES]
    assert worst(laws) <= exp_below(epsilon)
    assert worst(laws) > (1 - Fraction(1, 10**9)) * exp_below(epsilon)  # and no budget is wasted
    assert {len(report) for law in laws for report in law} == {16}


@pytest.mark.parametrize("mechanism", ["rounding", "piecewise", "wave"])
def test_the_mechanisms_for_comparison_are_private_too(transcript, mechanism):
    laws = [transcript(value, [3.0], epsilon=1.0, mechanism=mechanism) for value in VALUES]
    assert exp_below(1.0) * (1 - Fraction(1, 10**9)) < worst(laws) <= exp_below(1.0)


@pytest.mark.parametrize("asked", [[None, 3.0, None], [3.0, 10.0, None]])
def test_asking_again_in_any_phase_and_under_any_threshold_tells_nothing_more(transcript, asked):
    laws = [transcript(value, asked, epsilon=1.0) for value in VALUES]
    assert worst(laws) <= exp_below(1.0)
    for law in laws:
        assert all(report[:16] == report[16:32] == report[32:] for report in law)


@pytest.mark.parametrize("renewal", [0.25, 0.5])
def test_users_who_keep_to_first_reports_are_chosen_by_a_coin_that_knows_nothing(transcript, renewal):
    """The whole client, the coin included: ε for any two values, and each kind of report has the coin's chance."""
    settings = {"epsilon": 1.0, "renewal": renewal}
    for asked in ([3.0], [3.0, 10.0, None]):
        laws = [transcript(value, asked, **settings) for value in VALUES]
        assert exp_below(1.0) * (1 - Fraction(1, 10**9)) < worst(laws) <= exp_below(1.0)
        for law in laws:
            first = sum(chance for sent, chance in law.items() if StreamReport.from_bytes(sent[:16]).phase == FIRST)
            assert first == Fraction(renewal)
    for value in (0.0, 2.5):  # a mixture of the two laws, and before there is a θ no coin at all
        mixed, plain = transcript(value, [3.0], **settings), ToPLProtocol(1.0, 10, grid=5)
        for sent, chance in mixed.items():
            report = StreamReport.from_bytes(sent)
            law = plain.wave.law(plain.position(value)) if report.phase == FIRST else plain.second(3.0).law(value)
            part = Fraction(renewal) if report.phase == FIRST else 1 - Fraction(renewal)
            assert chance == part * law[report.y]
        before = transcript(value, [None], **settings)
        assert {StreamReport.from_bytes(sent).phase for sent in before} == {FIRST}


def test_values_outside_the_range_are_those_of_its_ends(transcript):
    for theta in THETAS:
        zero, top = transcript(0.0, [theta], epsilon=1.0), transcript(10.0, [theta], epsilon=1.0)
        assert transcript(-3.0, [theta], epsilon=1.0) == transcript(float("nan"), [theta], epsilon=1.0) == zero
        assert transcript(1e300, [theta], epsilon=1.0) == top
    assert transcript(7.0, [3.0], epsilon=1.0) == transcript(3.0, [3.0], epsilon=1.0)  # cut at θ


@pytest.mark.parametrize("epsilon", [0.3, 2.5])
def test_device_and_bulk_follow_the_law_of_the_mechanism(transcript, epsilon):
    protocol = ToPLProtocol(epsilon, 10, grid=5)
    for value in (0.0, 0.4, 2.5, 3.0):
        cells = {
            None: (protocol.wave.law(protocol.position(value)), lambda v, s: first_codes(protocol, v, s)),
            3.0: (protocol.second(3.0).law(value), lambda v, s: second_codes(protocol, v, 3.0, s)),
        }
        for theta, (law, bulk) in cells.items():
            expected = {code: chance for code, chance in enumerate(law) if chance}
            device = transcript(value, [theta], epsilon=epsilon)
            assert {StreamReport.from_bytes(sent).y: chance for sent, chance in device.items()} == expected

            def run(choose, value=value, bulk=bulk):
                return int(bulk(np.array([value]), EnumeratedBulk(choose))[0])

            many = law_of(run)
            assert set(many) == set(expected)
            assert all(abs(many[code] - expected[code]) < 1e-12 for code in expected)  # rounding coins have 53 bits


def test_samples_in_bulk_follow_the_law_and_the_test_has_teeth():
    protocol = ToPLProtocol(1.0, 10, grid=16)
    values, source = np.full(200_000, 2.5), SeededSource(3)
    first, second = first_codes(protocol, values, source), second_codes(protocol, values, 4.0, source)
    for epsilon, expected in ((1.0, True), (1.05, False), (0.95, False)):
        other = ToPLProtocol(epsilon, 10, grid=16)
        window = protocol.wave.window
        if other.wave.window.width == window.width:
            assert agrees(first, other.wave.law(other.position(2.5))) == expected
        laws = other.second(4.0).law(2.5)
        if len(laws) == protocol.outputs(4.0):
            assert agrees(second, laws) == expected
    assert agrees(second, protocol.second(4.0).law(2.5))


def test_no_report_depends_on_another_users_value():
    protocol = ToPLProtocol(2.0, 10)
    values = np.linspace(0, 10, 1000)
    changed = values.copy()
    changed[500] = 0.0
    for bulk in (
        lambda v: first_codes(protocol, v, SeededSource(1)),
        lambda v: second_codes(protocol, v, 4.0, SeededSource(1)),
    ):
        assert np.flatnonzero(bulk(values) != bulk(changed)).tolist() in ([], [500])
