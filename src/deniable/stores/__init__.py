"""Streams in files and pipes: values in by batches, released values out, states that survive a crash.

In: paths, pipes and publishers. Out: releases and journals. Commands call it.
"""
