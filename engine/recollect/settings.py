"""Settings of an engine and profiles of recall. The environment is read here and nowhere else."""

from __future__ import annotations

import os
from typing import Any, Literal

from msgspec import Struct, structs

from recollect.checks import check_count, check_finite, check_unit, shown
from recollect.errors import InvalidInput
from recollect.policies import Consolidation, WritePolicy
from recollect.remote.address import ModelAddress, provider_url

__all__ = ["PROFILES", "Profile", "Settings", "default_path", "language_model_address", "resolve_profile"]


class Profile(Struct, frozen=True, kw_only=True):
    """A full set of choices of recall. Any field can be overridden per call, e.g. `recall(query, spread=0)`.

    - vector_weight, keyword_weight: shares of cosine and of max-normalised BM25 in the fused score.
    - fusion: "weighted", or "rrf" (reciprocal rank fusion with `rrf_k`, normalised to [0.4, 1.0]).
    - candidates: how many of the best by vector, and by keyword, are fused.
    - spread: strength of spreading activation; 0 turns it off. Within it `neighbor_weight` is the share that flows
      from the strongest of the records up to two places before and after in the same source and of those linked
      (times the link's strength), `source_weight` the share of the source's best three.
    - expanded: of how many of the best candidates the neighbours become candidates too.
    - half_life_days, decay_floor, decay: weight of age, from 1 down to the floor; "half_life" is 0.5^(age / h),
      "exp" is e^(-age / h), "none" turns it off.
    - importance_weight: a record of importance 1 scores this share above one of 0.5, one of 0 as much below.
    - mmr_lambda: Jaccard MMR; 1 is pure relevance, None turns it off.
    - min_score, min_confidence: hits below are dropped.
    - gap_confidence: when the best hit's confidence is below this, `evidence_gaps` says what is missing.
    - rescored: how many of the nearest vectors are rescored from the stored float32.
    - look_weight, looked: weight of the second look beside the fused score, and how many of the best it is taken at;
      without token codes there is none (`Settings.token_codes`).
    """

    vector_weight: float = 0.6
    keyword_weight: float = 0.4
    fusion: Literal["weighted", "rrf"] = "weighted"
    rrf_k: float = 60.0
    candidates: int = 200
    spread: float = 1.0
    neighbor_weight: float = 0.4
    source_weight: float = 0.5
    expanded: int = 100
    # 90 days find as much as 30 on RealMem, with better first ranks, and lose no old session on LongMemEval.
    half_life_days: float = 90.0
    decay_floor: float = 0.5
    decay: Literal["half_life", "exp", "none"] = "half_life"
    importance_weight: float = 0.2
    mmr_lambda: float | None = None
    min_score: float = 0.0
    min_confidence: float = 0.0
    gap_confidence: float = 0.5
    rescored: int = 16
    look_weight: float = 0.5
    looked: int = 50

    def __post_init__(self) -> None:
        for name in ("vector_weight", "keyword_weight", "neighbor_weight", "source_weight", "spread",
                     "importance_weight", "rrf_k", "look_weight"):  # fmt: skip
            check_finite(getattr(self, name), name, minimum=0.0)
        if self.vector_weight + self.keyword_weight <= 0:
            raise InvalidInput("vector_weight and keyword_weight are both 0: nothing would rank")
        for name in ("min_score", "min_confidence", "gap_confidence", "decay_floor"):
            check_unit(getattr(self, name), name)
        if check_finite(self.half_life_days, "half_life_days") <= 0:
            raise InvalidInput(f"half_life_days is {shown(self.half_life_days)}: give days above 0, or decay='none'")
        if self.mmr_lambda is not None:
            check_unit(self.mmr_lambda, "mmr_lambda")
        if self.fusion not in ("weighted", "rrf"):
            raise InvalidInput(f"fusion is {shown(self.fusion)}: 'weighted' or 'rrf'")
        if self.decay not in ("half_life", "exp", "none"):
            raise InvalidInput(f"decay is {shown(self.decay)}: 'half_life', 'exp' or 'none'")
        check_count(self.candidates, "candidates")
        check_count(self.expanded, "expanded", minimum=0)
        check_count(self.rescored, "rescored", minimum=0)
        check_count(self.looked, "looked", minimum=0)

    def override(self, changes: dict[str, Any]) -> Profile:
        """The profile with some choices changed; an unknown one is refused by name."""
        if not changes:
            return self
        for name in changes:
            if name not in self.__struct_fields__:
                raise InvalidInput(
                    f"recall has no option {shown(name)}: use one of {', '.join(self.__struct_fields__)}"
                )
        return structs.replace(self, **changes)


PROFILES: dict[str, Profile] = {"default": Profile()}


def resolve_profile(name: object) -> Profile:
    """The profile of this name."""
    if isinstance(name, Profile):
        return name
    if isinstance(name, str) and name in PROFILES:
        return PROFILES[name]
    raise InvalidInput(f"profile is {shown(name)}: use one of {', '.join(PROFILES)}")


def default_path() -> str:
    """Where a memory without a path lives: RECOLLECT_DB, else `memory.db` in the user's data directory."""
    from pathlib import Path

    from platformdirs import user_data_path

    if path := os.environ.get("RECOLLECT_DB"):
        return path
    folder: Path = user_data_path("recollect", appauthor=False)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return str(folder / "memory.db")


def language_model_address(
    base_url: str | None = None, model: str | None = None, api_key: str | None = None
) -> ModelAddress | None:
    """The language model named by these and, where they are None, by RECOLLECT_LLM_BASE_URL, RECOLLECT_LLM_MODEL and
    RECOLLECT_LLM_API_KEY; None when neither URL nor model is there, InvalidInput when one of them is missing.
    """
    base_url = base_url or os.environ.get("RECOLLECT_LLM_BASE_URL") or None
    model = model or os.environ.get("RECOLLECT_LLM_MODEL") or None
    if base_url is None and model is None:
        return None
    if base_url is None or model is None:
        name = "RECOLLECT_LLM_BASE_URL" if base_url is None else "RECOLLECT_LLM_MODEL"
        raise InvalidInput(f"{name} is not set: a language model needs a base URL and a model's name")
    key = api_key or os.environ.get("RECOLLECT_LLM_API_KEY") or None
    return ModelAddress(base_url=base_url, model=model, api_key=key)


def remote_embedder_address() -> ModelAddress | None:
    """The embedder that EMBEDDING_PROVIDER ("openai", "ollama" or a base URL) and EMBEDDING_MODEL name, None without
    a provider. EMBEDDING_BASE_URL moves a provider elsewhere; EMBEDDING_API_KEY is its key, for OpenAI's also
    OPENAI_API_KEY.
    """
    provider = os.environ.get("EMBEDDING_PROVIDER")
    if not provider:
        return None
    base_url = provider_url(provider, "EMBEDDING_PROVIDER")
    model = os.environ.get("EMBEDDING_MODEL")
    if not model:
        raise InvalidInput(
            "EMBEDDING_MODEL is not set: name the model of EMBEDDING_PROVIDER, as 'text-embedding-3-small'"
        )
    key = os.environ.get("EMBEDDING_API_KEY")
    # OpenAI's key is sent to OpenAI alone, or where the user says that OpenAI is.
    is_openai = base_url == provider_url("openai")
    if is_openai:
        key = key or os.environ.get("OPENAI_API_KEY")
    base_url = os.environ.get("EMBEDDING_BASE_URL") or base_url
    if is_openai and not key:
        raise InvalidInput("EMBEDDING_PROVIDER is openai and there is no key: set EMBEDDING_API_KEY or OPENAI_API_KEY")
    return ModelAddress(base_url=base_url, model=model, api_key=key or None)


class Settings(Struct, frozen=True, kw_only=True):
    """How an engine runs. Every field has a measured or safe default.

    - embedder: "default", "instant" (token vectors without a network), "none" (keyword only, or vectors given by the
      caller), a folder with an ONNX model, or None for the environment's RECOLLECT_EMBEDDER, else
      EMBEDDING_PROVIDER's, else "default".
    - tier: "standard" is keyword recall only, no model loaded: embedder "none" by another name; "enhanced" is what
      `embedder` says.
    - durability: "full" survives power loss once `remember` returns; "normal" survives a killed process.
    - profile: the profile a recall uses unless it names one.
    - busy_timeout_ms: how long a write waits for another process's lock.
    - max_text_chars: longer texts are refused.
    - index: "memory" answers from RAM; "cold" answers from SQL; "once", for a process that asks once, from RAM where
      the store is small or has its sidecar, else from SQL; "auto" is memory.
    - sidecar: keep the index of a large store in a file beside it, `<database>-index`, from which it is ready several
      times sooner. The file is derived: it can be deleted at any time, and `forget` deletes it.
    - low_memory: rescoring vectors stay on disk, and with the sidecar all that is not written to; some recalls wait
      for the disk.
    - compile_kernels: compile the JIT kernels in the background if this machine has not yet; until then the
      python backend answers.
    - query_cache_size: query embeddings kept in memory.
    - write: what writing does besides storing; None is what the profile implies, which by default is nothing.
    - consolidation: consolidate episodes by themselves, after each `threshold` new ones of an agent; None does not.
    - token_codes: keep a code of 48 bytes for each telling token of what is written, by which recall takes a second
      look at its shortlist. `reembed` adds the codes to what is stored, or removes them.
    """

    embedder: str | None = None
    tier: Literal["standard", "enhanced"] = "enhanced"
    durability: Literal["full", "normal"] = "full"
    profile: str = "default"
    busy_timeout_ms: int = 10_000
    max_text_chars: int = 1_000_000
    index: Literal["auto", "memory", "cold", "once"] = "auto"
    sidecar: bool = True
    low_memory: bool = False
    compile_kernels: bool = True
    query_cache_size: int = 512
    token_codes: bool = False
    write: WritePolicy | None = None
    consolidation: Consolidation | None = None

    def __post_init__(self) -> None:
        if self.tier not in ("standard", "enhanced"):
            raise InvalidInput(f"Settings.tier is {shown(self.tier)}: 'standard' or 'enhanced'")
        if self.tier == "standard" and self.embedder not in (None, "none"):
            raise InvalidInput(
                f"Settings.tier 'standard' loads no embedder, but embedder is {shown(self.embedder)}: leave one out"
            )
        if self.durability not in ("full", "normal"):
            raise InvalidInput(f"Settings.durability is {shown(self.durability)}: 'full' or 'normal'")
        if self.index not in ("auto", "memory", "cold", "once"):
            raise InvalidInput(f"Settings.index is {shown(self.index)}: 'auto', 'memory', 'cold' or 'once'")
        for name in ("sidecar", "low_memory"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidInput(f"Settings.{name} is {shown(getattr(self, name))}: True or False")
        resolve_profile(self.profile)
        if self.embedder is not None and (not isinstance(self.embedder, str) or not self.embedder):
            raise InvalidInput(f"Settings.embedder is {shown(self.embedder)}: a name, a folder, 'none', or None")
        if check_count(self.busy_timeout_ms, "Settings.busy_timeout_ms", minimum=0) >= 2**31:
            raise InvalidInput(f"Settings.busy_timeout_ms is {self.busy_timeout_ms}: at most {2**31 - 1}")
        check_count(self.max_text_chars, "Settings.max_text_chars")
        check_count(self.query_cache_size, "Settings.query_cache_size", minimum=0)

    @property
    def write_policy(self) -> WritePolicy:
        """What `remember` does besides storing."""
        return self.write or WritePolicy()

    @property
    def embedder_spec(self) -> str | ModelAddress:
        """The embedder to load: the setting, else RECOLLECT_EMBEDDER, else EMBEDDING_PROVIDER's, else "default";
        "none" in tier "standard".
        """
        if self.tier == "standard":
            return "none"
        return self.embedder or os.environ.get("RECOLLECT_EMBEDDER") or remote_embedder_address() or "default"
