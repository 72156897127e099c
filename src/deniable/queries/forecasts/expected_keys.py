"""What to expect of another population that a question joins, before it has reported.

Its rows count as spread evenly over their domains. Then the law of its reports gives the mean μ of each function's
contributions and their second moments M. Weights for the users depend on the contributions themselves, so typical ones
are made up: numbers by id that have exactly the mean μ and the covariance M − μ·μᵀ, and otherwise no order.
"""

from __future__ import annotations

import numpy as np

from deniable.arrays import Floats
from deniable.queries.forecasts.even_means import EvenMeans
from deniable.queries.forecasts.view_moments import EvenShares, PartMoments
from deniable.queries.planning.key_functions import FunctionsAsked, KeyFunctions, functions_plan
from deniable.queries.question.question import Question
from deniable.queries.weights.axis_weights import Rule
from deniable.tables.specification.specification import Specification


def expected_functions(question: Question, collection: Specification, rule: Rule) -> KeyFunctions:
    """Typical contributions of a population with a row for every id, and their covariances."""
    if question.keyed is None:
        raise ValueError("the question is about users alone")
    asked = functions_plan(question, collection, rule)
    table, attribute = question.keyed.attribute
    domain = collection[table].domains[collection[table].private.index(attribute)]
    means, squares, products = _even_moments(asked, collection, question.keyed.table)
    spreads = np.where(np.abs(squares - products) > 1e-11 * np.abs(squares), squares - products, 0.0)
    values, vectors = np.linalg.eigh(squares - np.outer(means, means))
    drawn = _typical(domain.known_size, asked.functions)
    typical = np.zeros((asked.functions, domain.size))
    typical[:, : domain.known_size] = means[:, None] + (vectors * np.sqrt(np.maximum(values, 0.0))) @ drawn
    by_id = np.zeros((asked.functions, asked.functions, domain.size))
    by_id[:, :, : domain.known_size] = spreads[:, :, None]
    return KeyFunctions(question.keyed, asked, typical, by_id)


def _even_moments(asked: FunctionsAsked, collection: Specification, name: str) -> tuple[Floats, Floats, Floats]:
    """Of evenly spread rows: the mean of each function, E[W_i·W_j] and E[f_i·f_j].

    Functions that never count in one answer are taken as uncorrelated.
    """
    even = EvenMeans.of(collection[name], asked.plan.asked)
    columns = even.columns()
    means = columns[: asked.functions]
    squares, products = np.outer(means, means), np.outer(means, means)
    left, right = np.array(list(asked.pairs), dtype=np.int64).reshape(-1, 2).T
    shares = EvenShares(collection.design_of(name), (), None, {})
    drawn = [PartMoments.of(part, shares, left, right).randomised for part in asked.plan.parts]
    squares[left, right] = np.prod(drawn, axis=0)
    products[left, right] = columns[[asked.pairs[pair] for pair in asked.pairs]]
    return means, squares, products


def _typical(ids: int, functions: int) -> Floats:
    """functions × ids: numbers of mean zero, each of variance one and uncorrelated, as far as there are enough ids."""
    drawn = np.random.default_rng(0).standard_normal((ids, functions))  # made up: nothing here protects anything
    drawn -= drawn.mean(axis=0)
    if ids > functions:
        drawn, _ = np.linalg.qr(drawn)
    return np.asarray(drawn.T / np.sqrt(np.maximum((drawn**2).mean(axis=0), 1e-300))[:, None])
