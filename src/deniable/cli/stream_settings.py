"""Options that settle how a stream is published, before its first value, and the publisher that they describe."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING, Any

import click

from deniable.cli.ledger import ledger_option
from deniable.cli.stream import HIERARCHY, check_theta
from deniable.cli.terminal import simulation_option
from deniable.errors import InvalidParameter

if TYPE_CHECKING:
    from deniable.streams import KeyedPublisher, PersonStream, Publisher

METHODS = ("tops", "pak", "nme", "hc16", "smooth-hc16", "flat")
_USUAL_HORIZON = 1 << 20
_SETTINGS_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option("--epsilon", type=float, default=None, help="Privacy of one value against another."),
    click.option("--bound", type=float, default=None, help="Public upper bound. Larger values count as it."),
    click.option(
        "--low", type=float, default=0, show_default=True, help="Public lower bound. Smaller values are refused."
    ),
    click.option("--resolution", type=float, default=1, show_default=True, help="Step of the grid of values."),
    click.option(
        "--warmup", type=int, default=None, help="Values that are never published. Default: 256 to 4096, by --epsilon."
    ),
    click.option(
        "--horizon",
        type=int,
        default=_USUAL_HORIZON,
        show_default=True,
        help="Values of a chunk: the longest windows.",
    ),
    click.option(
        "--block", type=click.IntRange(1), default=None, help="Values of a block. Default: chosen by predicted error."
    ),
    click.option("--drift", type=float, default=None, help="Change of the mean, share of θ. Default: 0.04."),
    HIERARCHY,
    click.option("--theta", type=float, default=None, help="A public threshold, instead of a private choice."),
    click.option("--theta-per-key", is_flag=True, help="Every key learns θ from its own first --warmup values."),
    click.option(
        "--method",
        type=click.Choice(METHODS),
        default="tops",
        show_default=True,
        help="The publisher; all but tops are there to compare.",
    ),
    click.option("--paper", is_flag=True, help="Use ToPS with the paper's threshold and blocks."),
    click.option("--public-keys", is_flag=True, help="Keys, and how many values each has, are public."),
    click.option(
        "--on-bad",
        type=click.Choice(["stop", "skip", "clip", "zero"]),
        default=None,
        help="What becomes of missing, infinite and too small values. Default: stop.",
    ),
    ledger_option,
    simulation_option,
)


def settings_options(command: Any) -> Any:
    """Add all of them to a command."""
    return reduce(lambda changed, option: option(changed), reversed(_SETTINGS_OPTIONS), command)


def stream_per_key(options: dict[str, Any]) -> KeyedPublisher:
    """One stream per key."""
    from deniable.streams import KeyedPublisher

    if not options["public_keys"]:
        raise InvalidParameter(
            "--key",
            "shows everybody which keys there are and how many values each has",
            "Add --public-keys if that is public; otherwise leave out --key.",
        )
    _check_given(options)
    for name, usual in (("drift", None), ("hierarchy", "auto"), ("method", "tops"), ("paper", False)):
        if options[name] != usual:
            raise InvalidParameter(f"--{name}", "is not a setting of streams with keys", "Leave it out.")
    if options["theta_per_key"] and options["theta"] is not None:
        raise InvalidParameter("--theta-per-key", "learns what --theta gives", "Leave one of them out.")
    settings: dict[str, Any] = {name: options[name] for name in ("warmup", "block", "theta", "simulation")}
    settings["per_key"] = options["theta_per_key"]
    settings |= {"low": _whole(options["low"]), "resolution": _whole(options["resolution"])}
    if options["horizon"] != _USUAL_HORIZON:  # streams with keys have shorter chunks
        settings["horizon"] = options["horizon"]
    return KeyedPublisher(options["epsilon"], _whole(options["bound"]), public_keys=True, **settings)


def _check_given(options: dict[str, Any]) -> None:
    for name in ("epsilon", "bound"):
        if options[name] is None:
            raise InvalidParameter(f"--{name}", "is missing, and there is no store to go on with", "Give it.")


def one_stream(options: dict[str, Any]) -> Publisher | PersonStream:
    """One stream for all values."""
    from deniable.streams import Expectation, PersonStream, PublicThreshold
    from deniable.streams.central.named_publishers import BY_KIND

    _check_given(options)
    if options["theta_per_key"]:
        raise InvalidParameter("--theta-per-key", "needs keys", "Give --key as well, or leave it out.")
    settings: dict[str, Any] = {name: options[name] for name in ("horizon", "simulation")}
    if options["warmup"] is not None:
        settings["warmup"] = options["warmup"]
    settings |= {"low": _whole(options["low"]), "resolution": _whole(options["resolution"])}
    if options["block"] is not None:
        settings["block"] = options["block"]
    if options["theta"] is not None:
        check_theta(options["theta"], options["bound"], options["low"])
        settings["threshold"] = PublicThreshold(options["theta"])
    if options["paper"]:
        if options["method"] != "tops":
            raise InvalidParameter("--paper", "is a setting of ToPS", "Leave out --method.")
        settings["paper"] = True
    if options["drift"] is not None:
        if options["method"] != "tops" or options["paper"]:
            raise InvalidParameter("--drift", "is a setting of ToPS", "Leave out --method and --paper.")
        settings["expectation"] = Expectation(drift=options["drift"])
    if options["hierarchy"] != "auto":
        if options["method"] != "tops":
            raise InvalidParameter("--hierarchy", "is a setting of ToPS", "Leave out --method.")
        settings["hierarchy"] = options["hierarchy"]
    kind: Any = BY_KIND[options["method"]]
    if (options["person_column"] is None) != (options["most"] is None):
        raise InvalidParameter("--most", "and --person-column belong together", "Give both, or neither.")
    made: Publisher | PersonStream
    if options["most"] is None:
        made = kind(options["epsilon"], _whole(options["bound"]), **settings)
    else:
        settings |= {name: options[name] for name in ("most", "epoch", "window")}
        made = PersonStream(options["epsilon"], _whole(options["bound"]), method=kind, **settings)
    # Sums of blocks describe the whole stream; single values would fill the memory of an endless run.
    if made.plan.block < 64:
        made.forget()
    return made


def _whole(number: float) -> float:
    return int(number) if number.is_integer() else number
