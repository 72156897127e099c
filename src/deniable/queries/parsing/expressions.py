"""What is summed: polynomials of attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

Variable = tuple[str, str, str]
"""(table, attribute, column): the column is another name where a dimension's column stands for the attribute."""
Monomial = tuple[Variable, ...]
"""Variables that are multiplied, sorted; one may stand several times."""


@dataclass(frozen=True, slots=True, eq=False)
class Polynomial:
    """Σ coefficient · Π variables, exact."""

    terms: Mapping[Monomial, Fraction]

    @classmethod
    def constant(cls, value: Fraction) -> Polynomial:
        """A number."""
        return cls({(): value})

    @classmethod
    def variable(cls, variable: Variable) -> Polynomial:
        """A single attribute."""
        return cls({(variable,): Fraction(1)})

    @property
    def is_constant(self) -> bool:
        """Whether there is no attribute in it."""
        return all(not monomial for monomial in self.terms)

    @property
    def value(self) -> Fraction:
        """The value of a constant."""
        return sum(self.terms.values(), Fraction(0))

    @property
    def variables(self) -> set[Variable]:
        """The attributes in it."""
        return {variable for monomial in self.terms for variable in monomial}

    @property
    def degree(self) -> int:
        """The most attributes that are multiplied."""
        return max((len(monomial) for monomial in self.terms), default=0)

    def plus(self, other: Polynomial, factor: Fraction = Fraction(1)) -> Polynomial:
        """self + factor · other."""
        total = dict(self.terms)
        for monomial, coefficient in other.terms.items():
            total[monomial] = total.get(monomial, Fraction(0)) + factor * coefficient
        return Polynomial({monomial: value for monomial, value in total.items() if value or not monomial})

    def times(self, other: Polynomial) -> Polynomial:
        """Their product."""
        total: dict[Monomial, Fraction] = {}
        for first, a in self.terms.items():
            for second, b in other.terms.items():
                monomial = tuple(sorted(first + second))
                total[monomial] = total.get(monomial, Fraction(0)) + a * b
        return Polynomial({monomial: value for monomial, value in total.items() if value or not monomial})
