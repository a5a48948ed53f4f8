"""First tries: what a newcomer stores and asks, in stores of 2 to 10 memories.

Eight stores and thirty questions, written before anything was tuned on them and never trained on. Most questions share
few words with the memory that answers them; five have no answer in their store, four of these on its topic. The
memories are dated a minute apart, at most ten days before the question.

"answered first" is the share of the answerable questions whose memory is the first hit. "first and confident" is the
share of all questions that come out right at `THRESHOLD`: the right memory is first and its confidence reaches it, or
nothing answers and no hit reaches it.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.quality.calibration import THRESHOLD
from benchmarks.quality.columns import COLUMNS
from benchmarks.quality.result import OpenMemory, Progress, Tally

__all__ = ["STORES", "Store", "evaluate"]

LIMIT = 10
_WRITTEN = datetime(2026, 3, 2, 9, tzinfo=UTC)
_ASKED = datetime(2026, 3, 12, 18, tzinfo=UTC)


class Store(NamedTuple):
    """Memories as `remember_many` takes them, and questions with the place of the one that answers, or None."""

    memories: list[dict[str, Any]]
    questions: dict[str, int | None]


STORES = {
    "about me": Store(
        [
            {"text": "I moved from Oslo to Bergen"},
            {"text": "I'm allergic to peanuts and shellfish"},
            {"text": "I work as a nurse at the university hospital"},
            {"text": "My daughter Ingrid started school in August"},
            {"text": "I drive an old Volvo that needs new brakes"},
        ],
        {
            "Where do I live?": 0,
            "What foods should I avoid?": 1,
            "What is my job?": 2,
            "What's my blood type?": None,
        },
    ),
    "team decisions": Store(
        [
            {"text": "We use Kubernetes on AWS", "tags": ["infrastructure"]},
            {"text": "We migrated from PostgreSQL to MySQL", "tags": ["database"]},
            {"text": "Releases go out every second Tuesday", "tags": ["process"]},
            {"text": "Priya signs off every change to the billing service", "tags": ["process"]},
            {"text": "We agreed to drop Internet Explorer", "tags": ["frontend"]},
        ],
        {
            "What database are we using?": 1,
            "Where is our app hosted?": 0,
            "When do we deploy?": 2,
            "Which browsers don't we support any more?": 4,
            "What programming language is the backend written in?": None,
        },
    ),
    "preferences": Store(
        [
            {"text": "Please keep your answers short, I read them on my phone"},
            {"text": "I prefer tea over coffee, especially in the morning"},
            {"text": "Dark mode everywhere, bright screens give me headaches"},
            {"text": "Call me Sam, not Samantha"},
        ],
        {
            "What would the user like to drink?": 1,
            "How long should my replies be?": 0,
            "Which theme should the editor have?": 2,
        },
    ),
    "website relaunch": Store(
        [
            {"text": "The designer sent the final mockups", "context": "website relaunch"},
            {"text": "Client wants the launch moved to mid June", "context": "website relaunch"},
            {"text": "Budget is capped at 40k euros", "context": "website relaunch"},
            {"text": "Homepage loads in 6 seconds on mobile, far too slow", "context": "website relaunch"},
            {"text": "Tom is out until Monday, Lena covers for him", "context": "website relaunch"},
            {"text": "Legal still has to approve the cookie banner", "context": "website relaunch"},
            {"text": "We picked Astro over Next.js", "context": "website relaunch"},
        ],
        {
            "When do we go live?": 1,
            "How much money can we spend?": 2,
            "What framework did we choose?": 6,
            "Who is filling in for Tom?": 4,
            "Who is our contact person at the client?": None,
        },
    ),
    "two notes": Store(
        [
            {"text": "My sister's wedding is in Lisbon", "event_at": "2026-09-12T14:00:00+00:00"},
            {"text": "Passport expires in October"},
        ],
        {
            "Where does my sibling get married?": 0,
            "Which travel document do I have to renew?": 1,
            "How tall is Mount Everest?": None,
        },
    ),
    "mixed bag": Store(
        [
            {"text": "wifi at the cabin: network Birch, password is on the fridge", "tags": ["cabin"]},
            {"text": "Dentist moved to Thursday 9:30", "tags": ["health"]},
            {"text": "Max, our beagle, gets his pills twice a day"},
            {"text": "Anna recommended The Overstory", "tags": ["books"]},
            {"text": "Rent goes up to 1,450 from January", "tags": ["money"]},
            {"text": "Car insurance is with Allianz, renewal in March", "tags": ["money"]},
            {"text": "Grandma's lasagna: two layers of bechamel, bake 45 minutes"},
            {"text": "Sea otters hold hands while they sleep"},
            {"text": "Gym closes at 10 pm on weekdays"},
            {"text": "Started Portuguese on Duolingo"},
        ],
        {
            "What language am I learning?": 9,
            "How often does the dog need his medicine?": 2,
            "What should I read next?": 3,
            "How late can I work out?": 8,
            "How much do I pay for my apartment?": 4,
            "What is the name of my cat?": None,
        },
    ),
    "a repository": Store(
        [
            {"text": "Tests must pass on Windows too, CI failed there twice"},
            {"text": "User wants type hints on every function"},
            {"text": "The staging server is at 10.0.4.12, ssh as deploy"},
            {"text": "Never commit directly to main, always open a pull request"},
            {"text": "Login breaks when the email contains a plus sign"},
            {"text": "Secrets live in Vault, not in .env files"},
        ],
        {
            "Where are the credentials stored?": 5,
            "What bug is there with signing in?": 4,
            "May I push straight to master?": 3,
        },
    ),
    "customers": Store(
        [
            {"text": "Acme settles its invoices after 60 days", "context": "Acme"},
            {"text": "Ms. Ortiz decides what Globex buys", "context": "Globex"},
            {"text": "Initech cancelled because of the price", "context": "Initech"},
        ],
        {"Which client is slow to pay?": 0},
    ),
}


def evaluate(data: Path, open_memory: OpenMemory, on_progress: Progress) -> dict[str, Any]:
    """Both shares of every column, and what went wrong with `default`."""
    tally = Tally()
    missed: list[dict[str, Any]] = []
    for done, (name, store) in enumerate(STORES.items(), 1):
        with open_memory() as memory:
            ids = tally.remember(memory, _dated(store.memories))
            for column, options in COLUMNS.items():
                with tally.timed(column):
                    answers = memory.recall_many(list(store.questions), limit=LIMIT, as_of=_ASKED, **options)
                for (question, place), hits in zip(store.questions.items(), answers, strict=True):
                    best = max((hit.confidence for hit in hits), default=0.0)
                    if place is None:
                        figures = {"first and confident": float(best < THRESHOLD)}
                    else:
                        first = bool(hits) and hits[0].id == ids[place]
                        sure = first and hits[0].confidence >= THRESHOLD
                        figures = {"answered first": float(first), "first and confident": float(sure)}
                    tally.add(column, figures)
                    if column == "default" and not figures["first and confident"]:
                        confidence = hits[0].confidence if place is not None and hits else best
                        missed.append({"store": name, "question": question, **figures, "confidence": confidence})
        on_progress(done, len(STORES))
    return tally.result(stores=len(STORES), threshold=THRESHOLD, missed=missed)


def _dated(memories: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**each, "created_at": _WRITTEN + timedelta(minutes=place)} for place, each in enumerate(memories)]
