"""From a question to weights on cells. So far: weights on the tree of one attribute."""
