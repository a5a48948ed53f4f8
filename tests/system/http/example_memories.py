"""The memory of an invented person's assistant: for tests of the page, and for the pictures of its guide."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from recallite import Memory
from recallite.model.records import NewRecord
from recallite.model.settings import WritePolicy

_NOW = datetime(2026, 9, 21, 18, 30, tzinfo=UTC)
# Day of storing before `_NOW`, scope, kind, importance, tags, text.
_STATEMENTS = """
655|/mira/home|memory|0.6|home|Mira Okafor lives in Lisbon, in a flat near the botanical garden.
640|/mira|preference|0.8|answers|Mira prefers short answers with the main point first.
633|/mira/work|memory|0.7|work,team|Mira works at Northgate Maps as a data engineer.
628|/mira/work|memory|0.5|work|The nightly import of Northgate Maps starts at 02:30 and takes about forty minutes.
610|/mira/travel|memory|0.4|travel|Mira flew to Tromsø in January to see the northern lights.
601|/mira/home|memory|0.5|home,plants|The lemon tree on the balcony needs water every third day in summer.
590|/mira/health|memory|0.9|health|Mira is allergic to peanuts.
588|/mira|preference|0.6|food|Mira drinks oat milk in her coffee.
575|/mira/work|memory|0.6|work,database|The map tiles are stored in PostgreSQL 15 on the server called heron.
560|/mira/home|memory|0.4|home|The boiler was serviced by Teixeira & Sons; they come back every autumn.
548|/mira/travel|memory|0.5|travel|Mira took the night train from Lisbon to Porto and slept well.
530|/mira/work|memory|0.5|work,team|Jonas leads the tiles team; Priya owns the import pipeline.
515|/mira|memory|0.5|family|Mira's sister Adaeze lives in Leeds and has two children, Obi and Nneka.
502|/mira/home|memory|0.5|plants|Mira sowed basil, coriander and dill in the kitchen boxes.
495|/mira/work|memory|0.6|work|Priya asked for the import to be split in three stages: fetch, check and load.
480|/mira/health|memory|0.6|health,running|Mira runs five kilometres on Tuesdays and Saturdays.
466|/mira/travel|memory|0.5|travel|The ferry to the Berlengas islands leaves Peniche at 9:30 from May to September.
451|/mira/home|memory|0.4|home|The spare key is with Dona Amélia on the second floor.
444|/mira|preference|0.7|answers|Always give temperatures in Celsius and distances in kilometres.
430|/mira/work|memory|0.7|work,database|The team decided to move the map tiles from PostgreSQL to object storage.
421|/mira/work|memory|0.5|work|Jonas is on parental leave until the end of August.
409|/mira/home|memory|0.5|plants|Aphids were on the basil; a spray of soapy water helped within a week.
398|/mira/travel|memory|0.4|travel|In Porto the small hotel on Rua das Flores had the best breakfast.
385|/mira|memory|0.6|family|Adaeze visits Lisbon with the children every October.
372|/mira/health|memory|0.5|health|The dentist, Dr. Lima, wants to see Mira twice a year.
366|/mira/work|memory|0.6|work|The check stage of the import refuses tiles without a coordinate system.
350|/mira/home|memory|0.6|home|Mira is looking for a flat with a garden.
341|/mira|memory|0.5|music|Mira plays the cello in an amateur quartet; it rehearses on Thursday evenings.
333|/mira/work|memory|0.5|work,team|Priya presented the new pipeline at the Lisbon data meetup.
320|/mira/travel|memory|0.5|travel|Mira wants to walk the Rota Vicentina from Porto Covo to Odeceixe.
311|/mira/home|memory|0.8|home|Mira moved to Setúbal, to a house with a small garden.
305|/mira/home|memory|0.5|plants,garden|The garden has a fig tree, two olive trees and a bed for vegetables.
298|/mira/work|memory|0.5|work|Northgate Maps lets everyone work from home on three days a week.
290|/mira/health|memory|0.6|health,running|Mira is training for the half marathon in Setúbal in March.
283|/mira/home|memory|0.5|garden|The rain barrel behind the shed holds 300 litres.
276|/mira|preference|0.5|food|Mira does not like coriander in soups.
268|/mira/work|memory|0.6|work,database|All tiles are in object storage since the first week of January.
260|/mira/home|memory|0.4|garden|The moles under the lawn leave when the ground is wet.
252|/mira/travel|memory|0.5|travel|The train from Setúbal to Lisbon takes about an hour, with a change in Pinhal Novo.
245|/mira/work|memory|0.7|work,team|Mira leads the import team since February.
238|/mira|memory|0.5|music|The quartet rehearses Borodin's second string quartet.
230|/mira/home|memory|0.5|garden|Tomatoes, beans and courgettes go into the bed in April.
221|/mira/health|memory|0.7|health|Mira's knee hurt after the half marathon; the physiotherapist is Rui Matos.
214|/mira/work|memory|0.5|work|The server called heron was switched off in March.
206|/mira/home|memory|0.5|garden|The greenhouse kit arrived; it needs a level base of 2 by 3 metres.
199|/mira|memory|0.5|family|Obi starts school in Leeds in September.
190|/mira/travel|memory|0.5|travel|Mira walked the Rota Vicentina in five days in May; the third was the hardest.
183|/mira/home|memory|0.5|garden|The greenhouse stands since the middle of May, with the door to the south.
176|/mira/work|memory|0.6|work|The import fails when the supplier sends dates as day-month-year.
168|/mira/health|memory|0.6|health,running|Since the knee injury Mira swims on Tuesdays instead of running.
161|/mira/home|memory|0.5|garden|The tomatoes in the greenhouse need water every morning in July.
154|/mira/work|memory|0.7|work|Releases of the import go out on Wednesdays, never on Fridays.
147|/mira|preference|0.7|answers|When Mira asks for code, she wants Python with type hints.
140|/mira/home|memory|0.4|home|The washing machine shows E18 when the filter is blocked.
133|/mira/work|memory|0.5|work,team|Jonas is back and takes over the quality reports.
126|/mira/travel|memory|0.5|travel|Mira has a voucher for the Lisbon oceanarium until the end of the year.
118|/mira/home|memory|0.5|garden|Figs are ripe from the last week of August on.
110|/mira/health|memory|0.6|health|Rui Matos says that Mira may run again from October on, at most three kilometres.
101|/mira/work|memory|0.6|work|The supplier promised ISO dates from the autumn delivery on.
94|/mira|memory|0.5|music|The quartet plays in the library of Setúbal on 14 November.
86|/mira/home|memory|0.5|garden|The olive harvest is planned with the neighbours, the Baptista family.
79|/mira/work|memory|0.5|work|Priya moves to the Oslo office in December.
70|/mira/travel|memory|0.5|travel|Mira wants to visit Priya in Oslo and take the train to Bergen.
62|/mira/home|memory|0.6|home|The roof over the terrace leaks at the corner of the chimney.
55|/mira|memory|0.5|family|Nneka wants to learn the cello; Mira promised her the half-size one.
47|/mira/health|memory|0.5|health|Mira's appointment with Dr. Lima is on 6 October at 10:15.
40|/mira/work|memory|0.6|work|The new quality report counts tiles that overlap by more than two metres.
33|/mira/home|memory|0.5|garden|Garlic and broad beans go into the bed in October.
26|/mira/work|memory|0.7|work|The autumn delivery of the supplier is due on 5 October.
19|/mira/home|memory|0.5|home|The roofer, Sr. Correia, comes on Thursday morning.
12|/mira/travel|memory|0.5|travel|The flight to Leeds on 19 December is booked; it leaves Lisbon at 7:05.
6|/mira/work|memory|0.6|work|Mira asked Jonas to rehearse the delivery with last year's files.
2|/mira|memory|0.5|music|The quartet rehearses on Wednesday evenings now, no longer on Thursdays.
"""
# Stored as they are, without the rules that mark what replaces what: for the review.
_UNMARKED = """
540|/mira/work|Mira's desk at Northgate Maps is on the fourth floor.
120|/mira/work|Mira's desk at Northgate Maps is on the second floor.
300|/mira/home|The garden house is locked at night.
80|/mira/home|The garden house is not locked at night.
210|/mira/home|The neighbours' dog is called Fado.
209|/mira/home|The neighbours' dog is called Fado.
180|/mira/travel|Mira's bicycle is locked behind the house.
178|/mira/travel|Mira's bicycle is locked behind the house!
"""
_SESSION = (
    ("user", "Can you remind me what the physiotherapist said about running?"),
    ("assistant", "Rui Matos said that you may run again from October on, at most three kilometres."),
    ("user", "Good. I will do a slow loop along the Sado on the first Saturday then."),
    ("assistant", "Noted: a slow loop along the Sado on Saturday, 3 October."),
    ("user", "And please no reminders before eight in the morning."),
)
_MANUAL = """# Greenhouse handbook

Notes for the greenhouse in the garden.

## Base

The base is 2 by 3 metres and must be level to one centimetre. Slabs lie on ten centimetres of gravel.

## Watering

In July the tomatoes get four litres a plant every morning. The drip hose runs for twenty minutes. In September every
second day is enough.

## Winter

Open the door on mild days. Fleece protects the lemon tree below three degrees. Empty the drip hose
before the first frost.
"""


def fill(memory: Memory) -> dict[str, str]:
    """Store all of it; returns the ids of a few by name."""
    rows = [line.split("|") for line in _STATEMENTS.strip().splitlines()]
    ids = memory.remember_many(
        {"created_at": _before(days), "scope": scope, "kind": kind, "importance": float(importance),
         "tags": tags.split(","), "text": text}
        for days, scope, kind, importance, tags, text in rows
    )  # fmt: skip
    plain = WritePolicy(supersede_confidence=None, contradict_confidence=None, duplicates="store")
    unmarked = [line.split("|") for line in _UNMARKED.strip().splitlines()]
    memory.remember_many(
        [{"created_at": _before(days), "scope": scope, "text": text} for days, scope, text in unmarked], policy=plain
    )
    by_text = {row[5]: id for row, id in zip(rows, ids, strict=True)}

    def named(start: str) -> str:
        (id,) = (each for text, each in by_text.items() if text.startswith(start))
        return id

    session = memory.sessions.open("evening-walk", agent="mira", provider="example")
    session.extend([{"role": role, "content": content} for role, content in _SESSION], created_at=_before("1"))
    walk = memory.remember(
        NewRecord(
            "Mira plans a slow run along the Sado on Saturday, 3 October.",
            scope="/mira/health",
            tags=["health", "running"],
            source="evening-walk",
            position=2,
            created_at=_before("1"),
            metadata={"session": "evening-walk"},
        )
    )
    memory.remember(
        NewRecord(
            "Mira wants no reminders before eight in the morning.",
            scope="/mira",
            kind="preference",
            importance=0.7,
            tags=["answers"],
            source="evening-walk",
            position=4,
            created_at=_before("1"),
        )
    )
    memory.knowledge.ingest(_MANUAL.encode(), name="greenhouse-handbook.md", scope="/mira/home")
    knee, runs, swims = named("Mira's knee"), named("Mira runs five"), named("Since the knee injury")
    again, training = named("Rui Matos says"), named("Mira is training")
    for source, target, kind, strength in (
        (again, knee, "causal", 0.9), (swims, knee, "causal", 0.9), (walk.id, again, "elaborates", 0.8),
        (training, runs, "elaborates", 0.7), (knee, training, "sequential", 0.8), (walk.id, runs, "similar", 0.5),
    ):  # fmt: skip
        memory.link(source, target, type=kind, strength=strength)
    memory.supersede(named("Mira Okafor lives"), named("Mira moved to Set"), reason="moved")
    memory.supersede(named("Mira plays the cello"), named("The quartet rehearses on Wed"), reason="another evening")
    begin = "Rui Matos says that Mira may run again from October on,"
    memory.update(again, text=f"{begin} at most five kilometres a week.")
    memory.update(again, text=f"{begin} slowly and at most three kilometres at once.")
    return {"run again": again, "knee": knee, "walk": walk.id, "peanuts": named("Mira is allergic")}


def _before(days: str) -> datetime:
    return _NOW - timedelta(days=int(days), minutes=37 * int(days) % 600)
