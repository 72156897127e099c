"""What both halves of streams stand on: trees and their covariance, the grid of values, positions, smoothers, states.

In: public settings. Out: frozen values and pure functions; nothing here holds noise of its own.
"""
