import copy
import itertools
import math
import pickle
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy.stats import chi2

from agreement import agrees
from deniable.addresses import stream_key
from deniable.errors import InvalidParameter, RandomnessFault, SimulationOnly
from deniable.exact import GeometricDigits, RationalChance, word
from deniable.randomness import SecureSource, SeededSource, Source, release_source


class Scripted(Source):
    """A source whose words are known in advance; it must not be asked for more."""

    simulation = True

    def __init__(self, words):
        super().__init__(bytes(32))
        self._words = list(words)

    def words(self, size):
        taken, self._words = self._words[:size], self._words[size:]
        assert len(taken) == size
        return np.array(taken, dtype=np.uint64)


# Addresses


def test_the_keystream_is_aes_256_in_counter_mode():
    key = SecureSource.new_key()
    blocks = b"".join((5 + i).to_bytes(16, "big") for i in range(3))
    cipher = Cipher(algorithms.AES(stream_key(key, ("noise", 3))), modes.ECB()).encryptor()  # noqa: S305 - block by block
    expected = np.frombuffer(cipher.update(blocks), dtype="<u8")
    assert (SecureSource(key).stream("noise", 3).at(5).words(6) == expected).all()


@pytest.mark.parametrize("make", [lambda: SeededSource(7), lambda: SecureSource(b"k" * 32).recomputable(again=True)])
def test_the_same_address_gives_the_same_bits_and_draws_move_on(make):
    first, again = make().stream("tree", 1), make().stream("tree", 1)
    assert (first.discrete_laplace(Fraction(50), 40_000) == again.discrete_laplace(Fraction(50), 40_000)).all()
    assert first.counter == again.counter > 0
    assert (first.words(10) == make().stream("tree").stream(1).at(again.counter).words(10)).all()
    assert not (first.words(10) == first.words(10)).any()


def test_names_never_share_bits():
    source = SeededSource(7)
    names = [("a",), ("b",), ("a", "b"), ("ab",), (1,), ("1",), ("a", 1), ("a1",), ("str:1:a",)]
    first_words = {int(source.stream(*name).words(1)[0]) for name in names} | {int(source.at(0).words(1)[0])}
    assert len(first_words) == len(names) + 1
    assert source.counter == 0


def test_a_stream_needs_a_name_of_texts_and_integers():
    source = SeededSource(7)
    with pytest.raises(InvalidParameter, match="would repeat"):
        source.stream()
    for part in (None, b"bytes", 1.5, ("a",)):
        with pytest.raises(InvalidParameter, match="texts and integers"):
            source.stream(part)
    assert source.stream(np.int64(3)).words(1) == source.stream(3).words(1)


def test_seeds_and_keys_matter():
    assert SeededSource(1).words(1) != SeededSource(2).words(1)
    assert SecureSource().words(1) != SecureSource().words(1)


def test_large_and_small_reads_agree():
    whole, parts = SeededSource(3), SeededSource(3)
    assert (whole.words(1_000_000) == np.concatenate([parts.words(n) for n in (2, 999_998)])).all()


# Misuse


def test_a_seeded_source_needs_the_word_simulation():
    with pytest.raises(SimulationOnly, match="simulation=True"):
        release_source(SeededSource(1), simulation=False, epsilon=1.0)
    assert release_source(SeededSource(1), simulation=True, epsilon=1.0).simulation
    assert isinstance(release_source(None, simulation=False, epsilon=1.0), SecureSource)
    assert isinstance(release_source(None, simulation=True, epsilon=1.0), SecureSource)
    with pytest.raises(InvalidParameter, match="source"):
        release_source(np.random.default_rng(), simulation=True, epsilon=1.0)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_secure_source_cannot_be_duplicated(duplicate):
    with pytest.raises(RandomnessFault, match="cannot be copied"):
        duplicate(SecureSource())


def test_a_secure_source_refuses_to_work_in_a_forked_child():
    script = """
import os, sys
from deniable import SecureSource
from deniable.errors import RandomnessFault
source = SecureSource()
child = source.stream("child")
source.words(1)
if os.fork() == 0:
    for one in (source, child, source.stream("other")):
        try:
            one.words(1)
        except RandomnessFault as error:
            assert "another process" in str(error)
        else:
            os._exit(1)
    SecureSource().words(1)
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.parametrize("same_key", [True, False])
def test_a_secure_source_draws_no_bit_twice(same_key):
    key = SecureSource.new_key()
    source = SecureSource(key)
    other = SecureSource(key) if same_key else source
    source.stream("a", 1).words(1)
    again = [other.stream("a", 1), other.stream("a").stream(1), other.stream("a", 1).at(7)]
    for stream in again:
        with pytest.raises(RandomnessFault, match="drawn before"):
            stream.words(1)
        with pytest.raises(RandomnessFault, match="drawn before"):
            stream.recomputable()
    other.stream("a", 2).words(1)
    source.words(1)
    with pytest.raises(RandomnessFault, match="drawn before"):
        source.at(0).words(1)
    if same_key:
        with pytest.raises(RandomnessFault, match="drawn before"):
            other.words(1)
    assert (source.fresh("b").words(4) != source.fresh("b").words(4)).all()


def test_an_owner_may_draw_the_same_bits_again_and_nobody_else():
    source = SecureSource()
    mine = source.stream("tree").recomputable()
    assert (mine.stream(1).words(4) == mine.stream(1).words(4)).all()
    with pytest.raises(RandomnessFault, match="drawn before"):
        source.stream("tree").recomputable()
    again = source.stream("tree").recomputable(again=True)
    assert (mine.stream(1).words(4) == again.stream(1).words(4)).all()
    assert (SeededSource(1).recomputable().words(4) == SeededSource(1).fresh().words(4)).all()


def test_a_repr_shows_no_key():
    key = SecureSource.new_key()
    shown = repr(SecureSource(key).stream("a"))
    assert shown == "SecureSource(name=('a',), counter=0)"
    assert key.hex() not in shown


@pytest.mark.parametrize("key", [b"short", "k" * 32, 7])
def test_a_bad_key_is_refused(key):
    with pytest.raises(InvalidParameter, match="key"):
        SecureSource(key)


def test_bad_requests_are_refused():
    source = SeededSource(1)
    for ask in (
        lambda: source.below(0, 1),
        lambda: source.below(2**63 + 1, 1),
        lambda: source.randbelow(0),
        lambda: source.bernoulli(Fraction(3, 2), 1),
        lambda: source.at(-1),
        lambda: source.discrete_laplace(0.001, 1),
        lambda: source.geometric(math.nan, 1),
    ):
        with pytest.raises(InvalidParameter):
            ask()


# Laws


@pytest.mark.parametrize("bound", [1, 2, 3, 10, 1000])
def test_integers_below_a_bound_are_uniform(bound):
    outcomes = SeededSource(11).below(bound, 300_000)
    assert agrees(outcomes, [Fraction(1, bound)] * bound)
    assert bound == 1 or not agrees(
        np.minimum(outcomes + (outcomes % 19 == 0), bound - 1), [Fraction(1, bound)] * bound
    )


@pytest.mark.parametrize("bound", [3 * 2**61, 2**63 - 1, 2**33 + 5])
def test_large_bounds_have_no_modulo_bias(bound):
    # With 2^64 = 2 · (3 · 2^61) + 2^62, a plain remainder would be below 2^62 half of the time instead of a third.
    outcomes = SeededSource(12).below(bound, 200_000)
    assert outcomes.min() >= 0
    assert outcomes.max() < bound
    assert agrees(outcomes // (-(-bound // 3)), [1 / 3, 1 / 3, 1 / 3])


def test_rejected_words_are_drawn_again():
    bound = 3 * 2**61
    surplus = 2**64 % bound
    source = Scripted([surplus - 1, surplus, 0, surplus + 5])
    assert source.below(bound, 2).tolist() == [(surplus + 5) % bound, surplus % bound]


@pytest.mark.parametrize("chance", [Fraction(0), Fraction(1), Fraction(1, 3), Fraction(1, 10**6), Fraction(999, 1000)])
def test_coins_follow_their_chance(chance):
    assert agrees(SeededSource(13).bernoulli(chance, 400_000).astype(int), [1 - chance, chance])


def test_a_wrong_coin_is_noticed():
    outcomes = SeededSource(13).bernoulli(Fraction(1, 3), 400_000).astype(int)
    assert not agrees(outcomes, [1 - 0.35, 0.35])


def test_equal_digits_are_refined():
    third = RationalChance(Fraction(1, 3))
    first, second = word(third, 0), word(third, 1)
    ties = Scripted([first, 5, first, first + 1, second - 1, second + 1])
    assert ties.bernoulli(third, 4).tolist() == [True, True, False, False]


def test_coins_with_thresholds_of_their_own():
    thresholds = np.repeat(np.array([0, 2**62, 2**63], dtype=np.uint64), 100_000)
    outcomes = SeededSource(14).coins(thresholds).reshape(3, -1).astype(int)
    for row, chance in zip(outcomes, (0.0, 0.25, 0.5), strict=True):
        assert agrees(row, [1 - chance, chance])


def geometric_law(scale, cells):
    q = math.exp(-1 / scale)
    return [(1 - q) * q**k for k in range(cells)] + [q**cells]


def laplace_law(scale, reach):
    r = math.exp(-1 / scale)
    ends = r**reach / (1 + r)
    return [ends, *((1 - r) / (1 + r) * r ** abs(k) for k in range(-reach + 1, reach)), ends]


def test_coins_of_several_chances():
    chances = [Fraction(0), Fraction(1, 3), Fraction(9, 10), Fraction(1)]
    which = np.repeat(np.arange(4), 100_000)
    outcomes = SeededSource(20).bernoulli_each(chances, which).reshape(4, -1).astype(int)
    for row, chance in zip(outcomes, chances, strict=True):
        assert agrees(row, [1 - chance, chance])
    assert not agrees(outcomes[1], [0.65, 0.35])
    third = RationalChance(Fraction(1, 3))
    first, second = word(third, 0), word(third, 1)
    ties = Scripted([first, 0, first, second - 1, second + 1])
    assert ties.bernoulli_each([third, Fraction(1)], np.array([0, 1, 0])).tolist() == [True, True, False]


def test_coins_of_ratios():
    numerators = np.repeat([0, 1, 5, 7], 100_000)
    outcomes = SeededSource(21).ratio_coins(numerators, 7).reshape(4, -1).astype(int)
    for row, chance in zip(outcomes, (0, 1 / 7, 5 / 7, 1), strict=True):
        assert agrees(row, [1 - chance, chance])
    threshold = 5 * 2**64 // 7
    assert Scripted([threshold - 1, threshold]).ratio_coins(np.array([5, 5]), 7).tolist() == [True, False]


def test_integers_below_bounds_of_their_own():
    bounds = np.repeat([1, 2, 7, 3 * 2**61], 100_000)
    outcomes = SeededSource(22).below_each(bounds).reshape(4, -1)
    assert not outcomes[0].any()
    assert agrees(outcomes[1], [0.5, 0.5])
    assert agrees(outcomes[2], [1 / 7] * 7)
    assert agrees(outcomes[3] // 2**61, [1 / 3] * 3)
    surplus = 2**64 % (3 * 2**61)
    assert Scripted([0, surplus - 1, surplus + 2]).below_each(np.array([1, 3 * 2**61])).tolist() == [0, surplus + 2]


@pytest.mark.parametrize("scale", [0.01, 0.3, 1.0, Fraction(22, 7), 7.5, 60.0])
def test_geometric_and_laplace_draws_follow_their_exact_laws(scale):
    cells = max(4, int(8 * scale))
    source = SeededSource(15)
    assert agrees(np.minimum(source.geometric(scale, 400_000), cells), geometric_law(scale, cells))
    noise = np.clip(source.discrete_laplace(scale, 400_000), -cells, cells) + cells
    assert agrees(noise, laplace_law(scale, cells))
    if scale >= 0.3:
        assert not agrees(noise, laplace_law(scale * 1.05, cells))
        assert not agrees(noise, laplace_law(scale / 1.05, cells))


@pytest.mark.parametrize("scale", [1e5, 1e9, 1e12])
def test_huge_scales_follow_the_law_in_bins_of_equal_chance(scale):
    noise = SeededSource(16).discrete_laplace(scale, 500_000) / scale
    edges = np.concatenate((np.log(np.linspace(0.05, 1, 20)), -np.log(np.linspace(1, 0.05, 20)[1:])))
    bins = np.searchsorted(edges, noise)
    chances = np.diff(np.concatenate(([0.0], np.where(edges < 0, np.exp(edges) / 2, 1 - np.exp(-edges) / 2), [1.0])))
    assert agrees(bins, chances)
    assert not agrees(np.searchsorted(edges, noise * 1.05), chances)


@pytest.mark.parametrize("scale", [1e5, 1e12])
def test_moments_at_huge_scales(scale):
    n = 1_000_000
    noise = SeededSource(17).discrete_laplace(scale, n).astype(float) / scale
    # Mean 0, variance 2, fourth moment 24, eighth moment 40320: six standard errors each.
    assert abs(noise.mean()) < 6 * math.sqrt(2 / n)
    assert abs((noise**2).mean() - 2) < 6 * math.sqrt((24 - 4) / n)
    assert abs((noise**4).mean() - 24) < 6 * math.sqrt((40320 - 576) / n)
    assert (SeededSource(17).discrete_laplace(scale, 1000) % 2).mean() == pytest.approx(0.5, abs=0.1)


def test_laplace_draws_agree_with_an_independent_exact_sampler():
    import opendp.prelude as dp

    dp.enable_features("contrib")
    n, scale, reach = 40_000, 3.0, 12
    sampler = dp.m.make_laplace(dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int), scale=scale)

    def histogram(noise):
        return np.bincount(np.clip(noise, -reach, reach) + reach, minlength=2 * reach + 1)

    theirs = histogram(np.array(sampler([0] * n)))
    ours = histogram(SeededSource(18).discrete_laplace(scale, n))
    wrong = histogram(SeededSource(18).discrete_laplace(scale * 1.1, n))

    def distance(a, b):
        return float(((a - b) ** 2 / (a + b)).sum())

    limit = chi2.isf(1e-9, df=2 * reach)
    assert distance(ours, theirs) < limit < distance(wrong, theirs)


def test_ties_and_the_tail_of_vectorised_draws_are_followed_to_the_end():
    scale = Fraction(1)
    digits = GeometricDigits.of(scale)
    bits = len(digits.bits)
    tails = 2**64 - 1
    rows = [[tails, tails] for _ in range(bits)]
    rows[0] = [word(digits.bits[0], 0), tails]  # a tie on the lowest digit of the first draw
    rows.append([tails, word(digits.tail, 0)])  # a tie on the tail of the second
    # The tie on digit 0 is decided for one, that on the tail too, and then the tail ends at once.
    source = Scripted([*itertools.chain(*rows), 0, 0, tails])
    assert source._geometric(scale, 2).tolist() == [1, 1 << bits]


def test_randbelow_serves_bounds_of_any_size():
    source = SeededSource(19)
    drawn = np.array([source.randbelow(3 * 2**200) // 2**200 for _ in range(30_000)])
    assert agrees(drawn, [1 / 3, 1 / 3, 1 / 3])
    assert {source.randbelow(1) for _ in range(5)} == {0}
