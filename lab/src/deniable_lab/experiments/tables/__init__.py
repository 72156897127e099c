"""Experiments of [XDW20]: tables of several services."""
