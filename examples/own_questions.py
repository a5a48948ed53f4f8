"""Compare two settings on your own questions: both answer the same questions, compared one by one.

Output:

    recall@2: 0.92 with the defaults, 0.58 with keywords alone
    better at 0 questions, worse at 2, equal at 4
    missed by the defaults:
      What has to be renewed?
        Ada's parking permit ends in September: limit
        The domain expires in May: limit
    not in the store: The office is in Bergen
"""

from __future__ import annotations

from recallite import Memory

MEMORIES = [
    "Ada's passport must be renewed in June",
    "The certificate of the web server is to be renewed in July",
    "Ada's parking permit ends in September",
    "The domain expires in May",
    "We migrated from PostgreSQL to MySQL",
    "Lena cannot eat gluten",
    "Tom's flat has no lift",
    "The flight to Lisbon leaves at 6:40",
]
# `expected` is a text or a part of one. That of the last question is not stored.
QUESTIONS = [
    {"question": "Which database did we migrate to?", "expected": ["PostgreSQL to MySQL"]},
    {"question": "When does my plane to Portugal depart?", "expected": ["flight to Lisbon"]},
    {"question": "Which food makes my daughter ill?", "expected": ["gluten"]},
    {"question": "Does Tom live in a flat with a lift?", "expected": ["Tom's flat"]},
    {"question": "When does the certificate end?", "expected": ["certificate of the web server"]},
    {"question": "What has to be renewed?", "expected": ["passport", "certificate", "parking permit", "domain"]},
    {"question": "Where is the office?", "expected": ["The office is in Bergen"]},
]


def main() -> None:
    """Store, ask, compare."""
    with Memory(":memory:") as memory:
        memory.remember_many(MEMORIES)
        report = memory.review.evaluate(QUESTIONS, k=2, against={"mode": "keyword"})
    assert report.figures is not None
    assert report.against is not None
    assert report.against.figures is not None
    ours, keywords = report.figures.recall, report.against.figures.recall
    print(f"recall@2: {ours:.2f} with the defaults, {keywords:.2f} with keywords alone")
    recall = report.comparisons[0]
    print(f"better at {len(recall.better)} questions, worse at {len(recall.worse)}, equal at {recall.equal}")
    print("missed by the defaults:")
    for question in report.missed:
        print(f"  {question.question}")
        for one in question.expected:
            if one.rank is None:
                print(f"    {one.text}: {one.stage}")
    print("not in the store:", ", ".join(missing.expected for missing in report.not_stored))


if __name__ == "__main__":
    main()
