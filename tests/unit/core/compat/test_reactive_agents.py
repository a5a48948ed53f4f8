"""Reactive Agents' tiers by number, and its names for consolidation."""

from __future__ import annotations

import pytest

from recallite import Memory, Settings
from recallite.compat import reactive_agents
from recallite.errors import InvalidInput
from recallite.model.settings import Consolidation


@pytest.mark.parametrize(("old", "tier", "embedder"), [("1", "standard", "none"), ("2", "enhanced", None)])
def test_numbered_tiers_work_with_a_deprecation_warning(old, tier, embedder):
    with pytest.warns(DeprecationWarning, match=f"tier '{old}' is deprecated: use tier='{tier}'"):
        assert reactive_agents.settings(tier=old) == Settings(embedder=embedder, sql_search=True)


def test_named_tiers_work_without_a_warning(recwarn):
    plain = Settings(embedder="none", durability="normal", sql_search=True)
    assert reactive_agents.settings(tier="standard", durability="normal") == plain
    assert reactive_agents.settings() == Settings(sql_search=True)
    assert [str(each.message) for each in recwarn] == []
    with pytest.raises(InvalidInput, match="tier is '3'"):
        reactive_agents.settings(tier="3")
    with pytest.raises(InvalidInput, match="loads no embedder, but embedder is 'instant'"):
        reactive_agents.settings(tier="standard", embedder="instant")


def test_consolidation_by_its_names():
    given = {"threshold": 10, "decayFactor": 0.9, "pruneThreshold": 0.2}
    wanted = Consolidation(threshold=10, decay_factor=0.9, prune_threshold=0.2)
    assert reactive_agents.consolidation(**given) == wanted
    assert reactive_agents.consolidation() == Consolidation()
    with Memory(":memory:", settings=reactive_agents.settings(tier="standard", consolidation=wanted)) as memory:
        assert memory.settings.consolidation == wanted
    assert Settings.from_dict(Settings(consolidation=wanted).to_dict()) == Settings(consolidation=wanted)


@pytest.mark.parametrize("wrong", [{"decayFactor": 1.5}, {"decayFactor": 0}, {"decayFactor": 0.9, "decay_factor": 0.8}])
def test_a_wrong_decay_is_refused(wrong):
    with pytest.raises((InvalidInput, TypeError), match="decay"):
        reactive_agents.consolidation(**wrong)
