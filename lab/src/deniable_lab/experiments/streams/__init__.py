"""Experiments of [WCZ21]: streams with and without trust."""
