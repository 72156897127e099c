"""How often somebody may ask: a bucket of allowances per address or user, which fills again with time.

Names are kept as keyed digests for as long as the process lives, and only the most recent ones. Time is an argument.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict

MOST_NAMES = 100_000


class RateLimit:
    """At most `per_minute` allowances a minute for each name, of which that many may be used at once.

    >>> limit = RateLimit(per_minute=2)
    >>> [limit.wait_s("10.0.0.1", now=0.0) for _ in range(3)]
    [0.0, 0.0, 30.0]
    """

    def __init__(self, per_minute: float, *, most_names: int = MOST_NAMES) -> None:
        self._most, self._per_second, self._names = max(per_minute, 1.0), per_minute / 60, most_names
        self._keyed = hashlib.blake2b(key=secrets.token_bytes(16), digest_size=16)
        self._left: OrderedDict[bytes, tuple[float, float]] = OrderedDict()
        self._last = ("", self._digest(""))

    def wait_s(self, name: str, now: float, count: int = 1) -> float:
        """Take allowances, or say how many seconds to wait if they are used up; then none is taken.

        A request for more than a whole minute's allowances is granted when the bucket is full.
        """
        if name != self._last[0]:  # an address often comes again
            self._last = (name, self._digest(name))
        digest, most = self._last[1], self._most
        left, since = self._left.get(digest, (most, now))
        if now > since:
            left += (now - since) * self._per_second
            left = most if left > most else left
        missing = (count if count < most else most) - left
        self._left[digest] = (left if missing > 0 else left - count, now)
        self._left.move_to_end(digest)
        if len(self._left) > self._names:
            self._left.popitem(last=False)
        return missing / self._per_second if missing > 0 else 0.0

    def _digest(self, name: str) -> bytes:
        keyed = self._keyed.copy()
        keyed.update(name.encode("utf-8", "surrogatepass"))
        return keyed.digest()
