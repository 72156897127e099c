"""Where the library is measured: experiments of both papers, and benchmarks next to peers.

A distribution of its own (`pip install ./lab` in a checkout), so that users of the library do not import it. It uses
public and internal modules of the library; the library never imports it. Its commands are `deniable bench` and
`deniable reproduce`.
"""
