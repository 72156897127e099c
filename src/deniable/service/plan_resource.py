"""POST /v1/plan: the errors to expect of a specification under other settings, before anything is collected.

The body is {"specification": TOML or null for this collector's, "questions": ["SELECT …"], "users": 100000,
"epsilon": 2.0, "rounds": 1, "fit": false}; without ε and rounds those of the specification hold. With `fit`, the views
of a grid are chosen for the questions. Predictions are kept, so that a slider that returns, and a question that stays
while another is typed, cost nothing.
"""

from __future__ import annotations

import math
import threading
import tomllib
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from deniable.collection import Collection, fit
from deniable.errors import BadInput, DeniableError, InvalidParameter
from deniable.queries.forecasts.forecast import Forecast
from deniable.service.answers import Refused, answered
from deniable.service.authorisation import require_scope
from deniable.service.collector import Collector
from deniable.service.questions_resource import answer_in_time
from deniable.service.request_bodies import json_entries
from deniable.tables.schema.report_format import ASSIGNED
from deniable.tables.schema.rounds import Rounds
from deniable.tables.specification.specification_files import to_toml

MOST_QUESTIONS = 50
MOST_PREDICTIONS = 2000
_KEPT: dict[tuple[str, str, str], dict[str, Any]] = {}
_TURN = threading.Lock()
_FIELDS = {"specification", "questions", "users", "epsilon", "rounds", "fit"}


async def post_plan(request: Request) -> Response:
    """What a specification leads to."""
    collector: Collector = request.app.state.collector
    require_scope(collector, request, "ask")
    entries = await json_entries(request, collector.settings, _FIELDS)
    questions = entries.get("questions")
    if not isinstance(questions, list) or not all(isinstance(text, str) for text in questions):
        raise Refused(400, "questions", "The questions are a list of texts. Nothing was planned.")
    if len(questions) > MOST_QUESTIONS:
        raise Refused(400, "questions", f"Ask at most {MOST_QUESTIONS} questions at once. Nothing was planned.")
    planned = await answer_in_time(
        collector,
        request,
        lambda ended: collector.questions.compute(lambda: _planned(collector, entries, questions), ended),
    )
    return answered(planned)


def _planned(collector: Collector, entries: dict[str, Any], questions: list[str]) -> dict[str, Any]:
    collection = _with_settings(_given(collector, entries.get("specification")), entries)
    users = entries.get("users", 100_000)
    if entries.get("fit"):
        collection = fit(collection, users=users, workload=questions or None, compared=False).collection
    return {
        "design": collection.design,
        "specification": to_toml(collection.to_dict()),
        "epsilon": float(collection.epsilon),
        "rounds": 1 if collection.rounds is None else collection.rounds.count,
        "lifetime": float(collection.spends.epsilon),
        "predictions": [_kept_prediction(collection, text, users) for text in questions],
    }


def _given(collector: Collector, specification: Any) -> Collection:
    if specification is None:
        return Collection.of(collector.folder.collection)
    if not isinstance(specification, str):
        raise BadInput("the specification is not a text. Nothing was planned. Send TOML.")
    try:
        return Collection.from_dict(tomllib.loads(specification))
    except tomllib.TOMLDecodeError as problem:
        raise InvalidParameter("specification", f"is not well-formed: {problem}", "Correct it there.") from None
    except (ValueError, RecursionError):
        raise InvalidParameter("specification", "is not well-formed", "Correct it.") from None


def _with_settings(collection: Collection, entries: dict[str, Any]) -> Collection:
    """The specification under the ε and the number of rounds that were asked for."""
    changes: dict[str, Any] = {}
    if entries.get("epsilon") is not None:
        changes["epsilon"] = entries["epsilon"]
    rounds = entries.get("rounds")
    if rounds is not None and rounds != 1:
        changes |= {"rounds": Rounds(rounds), "name": collection.name or "planned", "coins": ASSIGNED}
    elif rounds == 1:
        changes["rounds"] = None
    return collection.with_settings(**changes)


def _kept_prediction(collection: Collection, text: str, users: Any) -> dict[str, Any]:
    """The prediction, computed once for a specification, a question and a number of people."""
    known = (collection.sha256, text, repr(users))
    with _TURN:
        prediction = _KEPT.pop(known, None)
    prediction = _prediction(collection, text, users) if prediction is None else prediction
    with _TURN:
        _KEPT[known] = prediction
        while len(_KEPT) > MOST_PREDICTIONS:
            _KEPT.pop(next(iter(_KEPT)))
    return prediction


def _prediction(collection: Collection, text: str, users: Any) -> dict[str, Any]:
    """The errors of one question; a question that cannot be answered says why, and others go on."""
    try:
        forecast: Forecast = collection.forecast(text, users)
    except DeniableError as problem:
        return {"question": text, "answers": [], "refused": str(problem)}
    answers = [
        {
            "name": prediction.name,
            "error": None if math.isnan(prediction.error) else prediction.error,
            "share": prediction.error / users if prediction.per_user and not math.isnan(prediction.error) else None,
            "causes": {cause: share for cause, share in prediction.causes.items() if not math.isnan(share)},
        }
        for prediction in forecast.predictions
    ]
    return {"question": text, "answers": answers, "refused": None}
