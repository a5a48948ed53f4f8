"""Subjects of common words, so that "I'm vegetarian" and "I eat meat again" are compared."""

from __future__ import annotations

from recallite.text.index_terms import stem_of

_SUBJECTS = """
    diet: vegetarian veggie vegan pescatarian meat steak fish burger carnivore plant-based keto gluten; smoking:
    smoke smoking smoker cigarette cigarettes pack nicotine vape vaping; drinking: alcohol drink drinking wine beer
    sober drunk booze pub; coffee: coffee espresso caffeine decaf latte tea cortado cappuccino; home: live living
    flat apartment house moved home rent landlord tenant mortgage neighbourhood relocated settled; household: alone
    roommate roommates flatmate flatmates; job: job work works working employed unemployed employer hired fired
    freelance notice resigned career laid; manager: boss manager report reports supervisor; commute: commute
    commuting train drive bike remote office; single: single dating married engaged divorced divorce girlfriend
    boyfriend wife husband fiance fiancee wedding seeing broke proposed separated relationship; baby: pregnant baby
    birth newborn expecting trimester; school: kindergarten school grade college university preschool daycare
    semester graduate graduated; exam: exam test passed failed resit retake; pet: dog cat puppy kitten pet pets vet;
    death: died death passed buried funeral; health: hospital surgery operation sick cold flu ill recovered
    discharged healed wheelchair cane brace; allergy: allergic allergy allergies intolerant; medicine: pills
    medication antidepressants sertraline dose mg prescription; weight: weigh weight kilos pounds diet; gym: gym
    workout training train yoga pilates crossfit fitness; run: run running marathon jog race; car: car drive driving
    license garage vehicle; phone: phone iphone pixel android samsung mobile nokia; editor: editor vim vscode emacs
    helix ide; browser: browser firefox chrome safari arc edge; database: postgres postgresql mysql sqlite mongodb
    mongo mariadb dynamodb database cockroachdb; ci: ci jenkins actions pipeline circleci; deploy: deploy deploys
    deployment release released ship shipped releases; cloud: aws azure gcp hetzner heroku cloud; chat: slack teams
    discord mattermost; trip: trip flight flights flying fly travel booked holiday vacation train; bank: bank
    account savings debt owe loan paid; tv: netflix hulu subscription disney spotify cancelled; heating: heating oil
    heat pump gas; couch: couch sofa; piano: piano guitar violin drums ukulele cello instrument; book: reading read
    novel book; sleep: sleep sleeping insomnia bed; breakfast: breakfast porridge lunch; party: party birthday
    celebration
"""
SUBJECTS: dict[str, str] = {}
"""The name of what a stem is about."""
for _line in _SUBJECTS.split(";"):
    _name, _, _words = _line.partition(":")
    for _word in _words.split():
        SUBJECTS.setdefault(stem_of(_word), _name.strip())
