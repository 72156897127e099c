"""Words that nobody listed: which prefixes many people share, and with which words a question is asked again.

In: a domain of texts, and how many reports support which cells. Out: the words that are listed, and their threshold.
The database asks; `weights/word_weights.py` weighs what was found.
"""
