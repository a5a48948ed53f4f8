"""German, French and Spanish words of change: what no longer holds, and what holds in its place."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallite.model.settings import WritePolicy
from recallite.text.statements import judge, keys_of, statement_of
from recallite.text.statements.clause_changes import REPLACED
from recallite.text.statements.other_languages import ANOTHER, ENDED
from recallite.text.statements.traits import over_of
from recallite_kernels import arguments
from tests.limits import examples

SURE = WritePolicy().supersede_confidence or 1.0


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("Ich wohne in Berlin", "Ich wohne jetzt in Hamburg", ANOTHER),
        ("Ich wohne jetzt in Hamburg", "Jetzt wohne ich in Kiel", ANOTHER),
        ("Ich wohne in Berlin.", "Ich wohne nicht mehr in Berlin.", ENDED),
        ("Ich arbeite bei Siemens", "Ich arbeite jetzt bei Bosch", ANOTHER),
        ("Anna wohnt in Köln", "Anna wohnt inzwischen in Bonn", ANOTHER),
        ("Der Server läuft auf Port 8080", "Der Server läuft jetzt auf Port 9090", ANOTHER),
        ("Die Miete beträgt 800 Euro", "Die Miete beträgt jetzt 870 Euro", ANOTHER),
        ("Wir benutzen Jenkins", "Wir benutzen Jenkins nicht mehr", ENDED),
        ("Ich habe eine Katze", "Ich habe keine Katze mehr", ENDED),
        ("Wir benutzen Slack", "Slack wurde durch Zulip ersetzt", REPLACED),
        ("Wir benutzen Slack für den Chat", "Slack ist inzwischen durch Zulip ersetzt worden.", REPLACED),
        ("Nous utilisons Slack", "Slack a été remplacé par Zulip", REPLACED),
        ("Usamos Slack", "Slack fue reemplazado por Zulip", REPLACED),
        ("J'habite à Lyon", "Je n'habite plus à Lyon", ENDED),
        ("J\u2019habite à Lyon", "J'habite maintenant à Paris", ANOTHER),
        ("Je travaille chez Renault", "Je ne travaille plus chez Renault", ENDED),
        ("Marie habite à Lyon", "Maintenant Marie habite à Nice", ANOTHER),
        ("Nous utilisons Slack", "Nous n'utilisons plus Slack", ENDED),
        ("J'ai un chien", "Je n'ai plus de chien", ENDED),
        ("Trabajo en Acme", "Ya no trabajo en Acme", ENDED),
        ("Trabajo en Acme", "Ahora trabajo en Globex", ANOTHER),
        ("Ana vive en Madrid", "Ana ya no vive en Madrid", ENDED),
        ("Ana vive en Madrid", "Ana vive ahora en Sevilla", ANOTHER),
        ("El servidor usa Postgres", "El servidor ahora usa MySQL", ANOTHER),
    ],
)
def test_words_of_change_supersede(old: str, new: str, reason: str) -> None:
    one, other = statement_of(new), statement_of(old)
    found = judge(one, other, cosine=None, later=True)
    assert (found.outcome, found.reason) == ("supersedes", reason)
    assert found.confidence >= SURE
    assert judge(one, other, cosine=None, later=False).outcome == "contradicts"
    assert not set(keys_of(one)).isdisjoint(keys_of(other))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Ich wohne in Berlin", "Ich wohne in Hamburg"),
        ("Wir benutzen GitHub Actions", "GitHub wurde durch GitLab ersetzt"),
        ("Wir benutzen Slack", "Slack wird durch Zulip ersetzt"),
        ("Wir benutzen Slack", "Slack wurde nicht durch Zulip ersetzt"),
        ("Nous utilisons Slack", "Slack n'a pas été remplacé par Zulip"),
        ("Slack ist langsam", "Slack wurde durch Zulip ersetzt"),
        ("Anna wohnt in Köln", "Ben wohnt jetzt in Köln"),
        ("Jetzt benutzt Anna Jenkins", "Jetzt benutzt Ben Jenkins"),
        ("Ich arbeite bei Siemens", "Ich arbeite jetzt in Berlin"),
        ("Ich esse Fleisch", "Ich esse jetzt Fisch"),
        ("Der Server läuft auf Debian", "Der Server läuft jetzt auf Port 80"),
        ("Anna ist Ärztin", "Anna ist jetzt Mutter"),
        ("Ich wohne in Berlin und arbeite bei Siemens", "Ich wohne nicht mehr in Berlin"),
        ("Ich wohne nicht mehr in Berlin", "Ich wohne jetzt in Hamburg"),
        ("Ich brauche Zeit", "Ich brauche mehr Zeit"),
        ("Je parle anglais", "Je parle maintenant espagnol"),
        ("Marie habite à Lyon", "Paul n'habite plus à Lyon"),
        ("Le train part tard", "Le train part plus tard"),
        ("Hablo inglés", "Ahora hablo francés"),
        ("Trabajo en Acme", "Ahora vivo en Madrid"),
        ("Ana vive en Madrid", "Ana vive en Sevilla"),
        ("¿Vives en Madrid?", "¿Ya no vives en Madrid?"),
    ],
)
def test_what_may_hold_beside_it_stays(old: str, new: str) -> None:
    assert judge(statement_of(new), statement_of(old), cosine=None, later=True).outcome != "supersedes"


_WORDS = """
    ich wohne in Berlin jetzt nicht mehr ne n'habite plus J'habite à Lyon ya no ahora vivo en 8080 kein ist ' , . ?
"""
_TEXTS = st.lists(st.sampled_from(_WORDS.split()), max_size=10).map(" ".join)


@settings(deadline=None, max_examples=examples(200))
@given(_TEXTS, _TEXTS)
def test_any_words_are_judged_and_nothing_ends_itself(old: str, new: str) -> None:
    found = judge(statement_of(new), statement_of(old), cosine=None, later=True)
    assert found.reason
    assert old != new or found.outcome == "same"


@pytest.mark.parametrize(
    ("text", "over"),
    [
        ("Früher wohnte ich in Bonn", arguments.ENDED),
        ("Autrefois, j'habitais à Lyon", arguments.ENDED),
        ("Antes vivía en Madrid", arguments.ENDED),
        ("Früher wohnte ich in Bonn, jetzt wohne ich in Kiel", 0),
        ("Ich muss früher aufstehen", 0),
        ("Früher oder später merkt er es", 0),
        ("Früher Vogel fängt den Wurm", 0),
        ("Antes de comer me lavo las manos", 0),
        ("Früher wohnte ich in Bonn?", 0),
    ],
)
def test_what_was_formerly_is_over(text: str, over: int) -> None:
    assert over_of(statement_of(text)) == over
