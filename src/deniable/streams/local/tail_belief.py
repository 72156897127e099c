"""All distributions that explain first reports, weighted by how well they do: bodies of several kinds, smooth tails.

A threshold depends on the far tail, and there reports are mostly noise: the tail has to be smooth, whatever the body is
(`tail_family`). The body may be

- nothing but values at the low end: the whole distribution is one bump;
- the best such distribution: something more may hide anywhere, or the two are told apart better;
- the reconstruction (EM) up to one of its valleys: any number of plateaus, bursts and atoms.

Each is weighted by its evidence, the mean likelihood over its prior. A body that was fitted pays for its parameters:
a bump by the evidence that it lost when it was fitted itself, a peak of the reconstruction by log n, as in  [S78].
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from deniable.arrays import Floats
from deniable.mechanisms.reconstruction import reconstruct_counts
from deniable.streams.local.tail_family import ReportLikelihood, TailFit, coarsened, fit_tail
from deniable.streams.local.value_distribution import (
    DistributionBelief,
    FirstReports,
    bins_of,
    reconstructed,
    transition,
)

# Bins of likelihoods, of the reconstruction and of answers; where grids are coarse, divisors of them.
_COARSE, _MIDDLE, _FINE = 64, 128, 256
_LOW_END = 0.03
_SMALLEST_PEAK = 5e-4
_HOPELESS = 6.0  # evidence, in logs, below the best


def smooth_tail(reports: FirstReports) -> DistributionBelief:
    """The belief that the default threshold is chosen from."""
    window = reports.protocol.wave.window
    if math.isinf(window.epsilon):  # nothing is in doubt
        return reconstructed(reports)
    bins = bins_of(window)
    fine, coarse = math.gcd(bins, _FINE), math.gcd(bins, _COARSE)
    middle = math.gcd(bins, _MIDDLE)
    estimate = reconstruct_counts(window, _added(reports.counts, bins // middle), middle, smooth=False).shares
    reconstruction = np.repeat(estimate, fine // middle) / (fine // middle)
    likelihood = ReportLikelihood.of(
        _added(reports.counts, bins // coarse), transition(window, coarse), coarsened(reconstruction, coarse)
    )
    low = _low_end(fine)
    fits = _fitted_bumps(likelihood, low)
    most = max(evidence for _, evidence in fits)
    fits += _fitted_reconstructions(likelihood, reconstruction, math.log(reports.number), most - _HOPELESS)
    most = max(evidence for _, evidence in fits)
    shares, weights = [], []
    for fit, evidence in fits:
        if evidence > most - _HOPELESS:
            members, weight = fit.members()
            shares.append(members)
            weights.append(math.exp(evidence - most) * weight)
    believed = np.concatenate(weights)
    return DistributionBelief(_upper_ends(reports, fine), np.concatenate(shares), believed / believed.sum())


def _fitted_bumps(likelihood: ReportLikelihood, low: Floats) -> list[tuple[TailFit, float]]:
    """One bump; a second one in addition to it; and the righter of two, given the other."""
    first = fit_tail(likelihood, low)
    both = (1 - first.share) * low + first.share * first.bump
    second = fit_tail(likelihood, both)
    result = [(first, first.evidence), (second, second.evidence - first.complexity)]
    # Each is fitted again, given the other; the righter one last, because its tail decides.
    bumps = [(first.bump, first.share * (1 - second.share)), (second.bump, second.share)]
    rest = (1 - first.share) * (1 - second.share)
    latest = second
    for mine in sorted((0, 1), key=lambda index: int(np.argmax(np.cumsum(bumps[index][0]) > 0.999))):
        bump, share = bumps[1 - mine]
        if rest + share < 1e-6:
            return result
        latest = fit_tail(likelihood, (rest * low + share * bump) / (rest + share))
        scale = (1 - latest.share) / (rest + share)
        bumps[mine], bumps[1 - mine], rest = (latest.bump, latest.share), (bump, share * scale), rest * scale
    return [*result, (latest, latest.best - first.complexity - second.complexity)]


def _fitted_reconstructions(
    likelihood: ReportLikelihood, reconstruction: Floats, price: float, least: float
) -> list[tuple[TailFit, float]]:
    """The reconstruction up to each of its valleys, and all of it, each with a tail, while that may be worth it."""
    bins, size = likelihood.bins, reconstruction.size // likelihood.bins
    coarse = coarsened(reconstruction, bins)
    padded = np.concatenate(([0.0], coarse, [0.0]))
    peaks = np.flatnonzero((coarse >= padded[:-2]) & (coarse > padded[2:]) & (coarse > _SMALLEST_PEAK))
    valleys = [int(a + np.argmin(coarse[a : b + 1])) for a, b in pairwise(peaks)]
    best = -float(np.sum((likelihood.reports - likelihood.image(reconstruction)) ** 2)) / 2
    result: list[tuple[TailFit, float]] = []
    for count, valley in enumerate([*valleys, bins], start=1):
        if best + 1 - count * price < least:
            break
        body = np.where(np.arange(reconstruction.size) < valley * size, reconstruction, 0.0)
        if body.sum() > 0:
            fit = fit_tail(likelihood, body / body.sum())
            result.append((fit, fit.evidence - count * price))
    return result


def _added(counts: Floats, size: int) -> Floats:
    result: Floats = np.add.reduceat(counts, np.arange(0, counts.size, size))
    return result


def _low_end(bins: int) -> Floats:
    end = np.exp(-(((np.arange(bins) + 0.5) / bins / _LOW_END) ** 2) / 2)
    return np.asarray(end / end.sum())


def _upper_ends(reports: FirstReports, bins: int) -> Floats:
    """Values at the upper ends of fine bins: a bin whose middle counted would lose what lies above it."""
    return np.array([reports.protocol.value((index + 1) / bins) for index in range(bins)])
