"""A device has no packages: one value is randomised with the standard library alone."""

import subprocess
import sys
from pathlib import Path

import deniable

SCRIPT = """
import sys
sys.path.insert(0, {source!r})
import deniable
from deniable.mechanisms import *
assert RandomizedResponse(1.0, 4).perturb_one(3) in range(4)
seed, bucket = LocalHashing(1.0, 1000).perturb_one(321)
assert seed < 2**32 and bucket in range(4)
assert LocalHashing.binary(1.0, 1000).perturb_one(321)[1] in (0, 1)
assert StochasticRounding(1.0, 0, 10).perturb_one(2.5) in (0, 1)
for mechanism in (Piecewise(1.0, 0, 10), SquareWave(1.0, 0, 10)):
    assert 0 <= mechanism.perturb_one(2.5) < mechanism.window.outputs
assert 0 <= Hybrid(1.0, 0, 10).perturb_one(2.5) < Hybrid(1.0, 0, 10).outputs
assert isinstance(DiscreteLaplace(1.0).perturb_one(5), int)
for choice in (NoisyMax(1.0), PermuteAndFlip(1.0)):
    assert choice.perturb_one([1, 2, 3]) in range(3)
assert SmoothPercentile(1.0, bound=10, percentile=0.5).perturb_one([1, 2, 9]) in range(11)
assert PAKThreshold(1.0, bound=10).perturb_one([1, 2, 9]) in range(11)
shop = deniable.Collection(deniable.Table("users", age=deniable.Ordinal(1, 95)), epsilon=2.0)
assert len(shop.client().report("users", {{"age": 31}}).to_bytes()) == 32
from deniable.client import Client, Collection
assert len(Client(Collection.from_dict(shop.to_dict())).reports("users", [{{"age": 31}}])) == 1
for package in ("numpy", "scipy", "numba", "cryptography", "click", "rich"):
    assert package not in sys.modules, package
    try:
        __import__(package)
    except ImportError:
        continue
    sys.exit("the interpreter is not bare")
print("fine")
"""


def test_every_mechanism_randomises_one_value_without_any_package():
    source = str(Path(deniable.__file__).parents[1])
    # -I: no environment and no current folder; -S: no installed packages.
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", SCRIPT.format(source=source)], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("fine\n", "")
