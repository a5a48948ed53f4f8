// Written by generate.py from the OpenAPI of the server: do not edit.

export interface RememberRequest {
  text: string
  on_existing?: "error" | "replace" | "version"
  policy?: { [name: string]: unknown } | null
  importance?: number
  pinned?: boolean
  tags?: Array<string>
  context?: string | null
  topic?: string | null
  source?: string | null
  position?: number | null
  metadata?: { [name: string]: unknown } | null
  created_at?: string | null
  valid_from?: string | null
  valid_until?: string | null
  expires_at?: string | null
  supersedes?: string | Array<string> | null
  vector?: unknown
  scope?: string
  kind?: string
  id?: string | null
  indexed?: boolean
}

export interface RememberManyRequest {
  items: Array<string | { [name: string]: unknown }>
  policy?: { [name: string]: unknown } | null
  on_existing?: "error" | "replace" | "version"
}

export interface GetManyRequest {
  ids: Array<string>
}

export interface UpdateRequest {
  expires_at?: string | null
  renew?: boolean
  text?: string
  context?: string | null
  vector?: unknown
  kind?: string
  scope?: string
  tags?: Array<string>
  importance?: number
  metadata?: { [name: string]: unknown } | null
  topic?: string | null
  source?: string | null
  position?: number | null
  valid_from?: string | null
  valid_until?: string | null
  pinned?: boolean
}

export interface ForgetRequest {
  id?: string | Array<string> | null
  missing_ok?: boolean
  receipt?: boolean
  chain?: boolean
  scope?: string | Array<string> | null
  where?: { [name: string]: unknown } | null
  kinds?: string | Array<string> | null
  tags?: Array<string> | null
  since?: string | null
  until?: string | null
  as_of?: string | null
  valid_at?: string | null
  include_superseded?: boolean
  sessions?: boolean
}

export interface TouchRequest {
  ids: Array<string>
  expires_at?: string | null
  never?: boolean
}

export interface StorePurgeExpiredRequest {
  scope?: string | null
}

export interface VectorsRequest {
  ids: Array<string>
}

export interface RecallRequest {
  query: string
  limit?: number | null
  vector?: unknown
  mode?: "hybrid" | "vector" | "keyword"
  profile?: string | { [name: string]: unknown } | null
  relevant?: boolean
  scope?: string | Array<string> | null
  kinds?: string | Array<string> | null
  sessions?: boolean
  tags?: Array<string> | null
  where?: { [name: string]: unknown } | null
  as_of?: string | null
  valid_at?: string | null
  filter?: { [name: string]: unknown } | null
  diversify_by?: "time" | "source" | "one_per_source" | "one_per_source_over_time" | null
  token_budget?: number | null
  purpose?: "use" | "inspect" | "explain"
}

export interface RecallManyRequest {
  queries: Array<string>
  limit?: number | null
  vectors?: Array<unknown> | null
  mode?: "hybrid" | "vector" | "keyword"
  profile?: string | { [name: string]: unknown } | null
  relevant?: boolean
  scope?: string | Array<string> | null
  kinds?: string | Array<string> | null
  sessions?: boolean
  tags?: Array<string> | null
  where?: { [name: string]: unknown } | null
  as_of?: string | null
  valid_at?: string | null
  filter?: { [name: string]: unknown } | null
  diversify_by?: "time" | "source" | "one_per_source" | "one_per_source_over_time" | null
  token_budget?: number | null
  purpose?: "use" | "inspect" | "explain"
}

export interface ReviewExplainRequest {
  query: string
  id: string
  limit?: number | null
  vector?: unknown
  mode?: "hybrid" | "vector" | "keyword"
  profile?: string | { [name: string]: unknown } | null
  relevant?: boolean
  scope?: string | Array<string> | null
  kinds?: string | Array<string> | null
  sessions?: boolean
  tags?: Array<string> | null
  where?: { [name: string]: unknown } | null
  as_of?: string | null
  valid_at?: string | null
  filter?: { [name: string]: unknown } | null
  diversify_by?: "time" | "source" | "one_per_source" | "one_per_source_over_time" | null
  token_budget?: number | null
  purpose?: "use" | "inspect" | "explain"
}

export interface BootstrapRequest {
  agent?: string | null
  task: string
  budget_tokens?: number
  task_type?: string | null
}

export interface LinkRequest {
  source: string
  target: string
  type?: string
  strength?: number
}

export interface SupersedeRequest {
  old: string | Array<string>
  new: string | Array<string>
  reason?: string | null
  strength?: number
  at?: string | null
}

export interface RestoreRequest {
  version?: number | string | null
}

export interface SessionsOpenRequest {
  id?: string | null
  agent?: string | null
  provider?: string | null
}

export interface SessionsSearchRequest {
  query: string
  agent?: string | null
  limit?: number
  relevant?: boolean
}

export interface SessionsCleanupRequest {
  older_than: string
  agent?: string | null
}

export interface SessionExtendRequest {
  messages: Array<{ [name: string]: unknown }>
  created_at?: string | null
  agent?: string | null
}

export interface SessionPopRequest {
  skip_damaged?: boolean
  agent?: string | null
}

export interface SessionEndRequest {
  snapshot?: boolean
  agent?: string | null
  summary?: string
  key_decisions?: Array<string>
  task_ids?: Array<string>
  started_at?: string | null
  ended_at?: string | null
  total_cost?: number
  total_tokens?: number
}

export interface KnowledgeSearchRequest {
  query: string
  limit?: number
  mode?: "hybrid" | "vector" | "keyword"
  profile?: string | { [name: string]: unknown } | null
  relevant?: boolean
  scope?: string | Array<string> | null
  kinds?: string | Array<string> | null
  sessions?: boolean
  tags?: Array<string> | null
  where?: { [name: string]: unknown } | null
  as_of?: string | null
  valid_at?: string | null
  filter?: { [name: string]: unknown } | null
  diversify_by?: "time" | "source" | "one_per_source" | "one_per_source_over_time" | null
  token_budget?: number | null
  purpose?: "use" | "inspect" | "explain"
}

export interface KnowledgeContextRequest {
  query: string
  budget_tokens?: number
  limit?: number
  mode?: "hybrid" | "vector" | "keyword"
  profile?: string | { [name: string]: unknown } | null
  relevant?: boolean
  scope?: string | Array<string> | null
  kinds?: string | Array<string> | null
  sessions?: boolean
  tags?: Array<string> | null
  where?: { [name: string]: unknown } | null
  as_of?: string | null
  valid_at?: string | null
  filter?: { [name: string]: unknown } | null
  diversify_by?: "time" | "source" | "one_per_source" | "one_per_source_over_time" | null
  token_budget?: number | null
  purpose?: "use" | "inspect" | "explain"
}

export interface ReviewAuditRequest {
  checks?: Array<string> | null
  mend?: boolean
  scope?: string | Array<string> | null
  where?: { [name: string]: unknown } | null
  kinds?: string | Array<string> | null
  tags?: Array<string> | null
  since?: string | null
  until?: string | null
  as_of?: string | null
  valid_at?: string | null
  include_superseded?: boolean
  sessions?: boolean
}

export interface MemoryRecord {
  id: string
  text: string
  kind: string
  scope: string
  context: string | null
  tags: Array<string>
  importance: number
  base_importance: number | null
  pinned: boolean
  authority: "agent" | "document" | "tool" | "user" | "web"
  topic: string | null
  source: string | null
  position: number | null
  created_at: string
  valid_from: string | null
  valid_until: string | null
  valid_resolved: boolean
  updated_at: string
  accessed_at: string | null
  expires_at: string | null
  expires_after: string | null
  access_count: number
  recorded_from: string
  recorded_until: string | null
  superseded_at: string | null
  held_until: string | null
  supersedes: Array<string>
  superseded_by: Array<string>
  superseded_by_rule: string | null
  occurrences: number
  occurred_at: Array<string>
  metadata: { [name: string]: unknown }
  embedding_state: "embedded" | "none" | "pending" | "refused"
  indexed: boolean
  standing: "instruction" | "preference" | null
  outcome: "created" | "duplicate" | "merged" | "replaced" | "skipped" | "stored" | "updated"
  cosine: number | null
  links: Array<Link>
  contradictions: Array<Contradiction>
}

export interface Link {
  source: string
  target: string
  type: string
  strength: number
  created_at: string | null
  reason: string | null
}

export interface Contradiction {
  id: string
  text: string
  authority: "agent" | "document" | "tool" | "user" | "web"
  cosine: number | null
  reason: string
  strength: number
}

export interface RecordsAnswer {
  memories: Array<MemoryRecord>
  left_out: number
}

export interface Forgotten {
  records: number
  versions: number
  services: number
  holds_again: Array<string>
  receipt: ErasureReceipt | null
}

export interface ErasureReceipt {
  complete: boolean
  erased_at: string
  path: string
  ids: Array<string>
  removed: { [name: string]: number }
  index_snapshot: boolean
  searched: number
  too_short: number
  files: { [name: string]: number }
  elsewhere: { [name: string]: number }
  problems: Array<string>
}

export interface ScopeCount {
  scope: string
  memories: number
}

export interface TagCount {
  tag: string
  memories: number
}

export interface HitsAnswer {
  hits: Array<Hit>
  query: string
  evidence_gaps: Array<string>
  left_out: number
  sub_queries: Array<string>
  scopes: Array<string>
  diversify_by: string | null
  stages: { [name: string]: number }
}

export interface Hit {
  id: string
  text: string
  score: number
  confidence: number
  kind: string
  scope: string
  context: string | null
  tags: Array<string>
  importance: number
  created_at: string
  valid_from: string | null
  valid_until: string | null
  updated_at: string
  authority: "agent" | "document" | "tool" | "user" | "web"
  topic: string | null
  held_until: string | null
  superseded_by: Array<string>
  supersedes: Array<Former>
  contradicts: Array<string>
  metadata: { [name: string]: unknown }
  source: SourceRef | null
  match_reasons: Array<string>
  evidence_gaps: Array<string>
  signals: { [name: string]: number }
}

export interface Former {
  id: string
  text: string
  held_from: string
  held_until: string
}

export interface SourceRef {
  id: string
  position: number | null
  path: string | null
  lines: [number, number] | null
}

export interface Explanation {
  id: string
  query: string
  returned: boolean
  stage: string
  reason: string
  rank: number | null
  score: number | null
  confidence: number | null
  authority: "agent" | "document" | "tool" | "user" | "web" | null
  signals: { [name: string]: number }
  ranks: { [name: string]: number }
  learned: { [name: string]: number }
  index: string | null
}

export interface BootstrapText {
  text: string
  tokens: number
  left_out: number
  replaced: number
}

export interface Reached {
  record: MemoryRecord
  distance: number
  strength: number
}

export interface SessionInfo {
  id: string
  agent: string | null
  scope: string
  provider: string | null
  messages: number
  created_at: string
  updated_at: string
}

export interface OpenedSession {
  id: string
  agent: string | null
  provider: string | null
  created_at: string
}

export interface MessageHit {
  session: string
  agent: string | null
  scope: string
  position: number
  role: string | null
  content: string
  created_at: string
  score: number
  confidence: number
}

export interface Snapshot {
  id: string
  agent: string | null
  scope: string
  session_id: string | null
  messages: Array<{ [name: string]: unknown }>
  summary: string
  key_decisions: Array<string>
  task_ids: Array<string>
  started_at: string | null
  ended_at: string
  total_cost: number
  total_tokens: number
}

export interface IngestedDocument {
  id: string
  source: string
  outcome: "created" | "duplicate" | "unchanged" | "updated"
  title: string | null
  chunks: number
  chunks_created: number
  chunks_deleted: number
  pending: number
  duplicate_of: string | null
  warnings: Array<string>
}

export interface Document {
  id: string
  source: string
  scope: string
  title: string | null
  media_type: string
  content_hash: string
  size_bytes: number
  chunks: number
  created_at: string
  updated_at: string
  metadata: { [name: string]: unknown }
}

export interface DeletedDocument {
  id: string
  source: string
  chunks: number
}

export interface Stats {
  path: string | null
  records: number
  superseded: number
  versions: number
  to_compare: number | null
  pending: number
  refused: number
  vectors: number
  token_codes: number
  token_code_bytes: number
  links: number
  sources: number
  terms: number | null
  kinds: { [name: string]: number }
  bytes_on_disk: number | null
  schema_version: number
  sequence: number | null
  database: string
  encrypted: boolean
  vector_extension: string | null
  behind_ms: number | null
  embedder: string | null
  dimension: number | null
  vector_type: string | null
  kernels: string
  mode: string
  services: { [name: string]: number }
  index: { [name: string]: unknown }
  notes: Array<string>
}

export interface Audit {
  records: number
  superseded: number
  may_hold: number
  findings: Array<Finding>
}

export interface Finding {
  check: string
  id: string
  text: string
  reason: string
  other: string | null
  other_text: string | null
  verb: string | null
  at: string | null
  mended: boolean
}

export interface Imported {
  records: number
  skipped: number
  links: number
  warnings: Array<string>
  warnings_total: number
}

export interface TimelineBucket {
  start: string
  memories: number
}

export interface VersionDiff {
  from: string
  to: string
  parts: Array<["delete" | "equal" | "insert", string]>
}

export interface ClientOptions {
  /** Sent as "Authorization: Bearer". */
  token?: string
  /** Narrows every request to this scope. */
  scope?: string
  /** In place of the global `fetch`. */
  fetch?: typeof fetch
  /** Milliseconds until a request is given up; 60,000 unless given. */
  timeout?: number
}

/** An answer that is an error: `type` and `reason` are those of the Python error, `status` is 0 without an answer. */
export class RecalliteError extends Error {
  readonly status: number
  readonly type: string
  readonly reason: string | null
  readonly field: string | null
}

export class Client {
  /** `url` is that of `recallite serve`, such as http://127.0.0.1:7333. */
  constructor(url: string, options?: ClientOptions)
  /** Store memories, and print their ids. */
  remember(fields: RememberRequest): Promise<MemoryRecord>
  /** Show memories in order, filtered as recall filters. */
  list(fields?: { order?: string; limit?: number | null; offset?: number; scope?: Array<string> | null; where?: { [name: string]: unknown } | null; kinds?: Array<string> | null; tags?: Array<string> | null; since?: string | null; until?: string | null; as_of?: string | null; valid_at?: string | null; include_superseded?: boolean; sessions?: boolean }): Promise<RecordsAnswer>
  /** Store memories, each a text or the fields of a `NewRecord`, all or none; returns their ids. */
  rememberMany(fields: RememberManyRequest): Promise<Array<string>>
  /** Show memories. */
  get(fields: { id: string }): Promise<MemoryRecord>
  /** Change fields of a memory. */
  update(fields: { id: string } & UpdateRequest): Promise<MemoryRecord>
  /** Purge a memory, with its versions, vectors and words. */
  forgetOne(fields: { id: string; chain?: boolean }): Promise<Forgotten>
  /** The memories with these ids, in their order; those that are not visible here are absent. */
  getMany(fields: GetManyRequest): Promise<Array<MemoryRecord>>
  /** Count memories, filtered as recall filters. */
  count(fields?: { scope?: Array<string> | null; where?: { [name: string]: unknown } | null; kinds?: Array<string> | null; tags?: Array<string> | null; since?: string | null; until?: string | null; as_of?: string | null; valid_at?: string | null; include_superseded?: boolean; sessions?: boolean }): Promise<number>
  /** Purge memories by id or by filter. */
  forget(fields?: ForgetRequest): Promise<Forgotten>
  /** Let memories live longer, or expire at another time. */
  touch(fields: TouchRequest): Promise<number>
  /** Purge expired memories. */
  storePurgeExpired(fields?: StorePurgeExpiredRequest): Promise<Forgotten>
  /** The vectors of memories by id, a unit vector for each part of a long text. */
  vectors(fields: VectorsRequest): Promise<{ [name: string]: Array<Array<number>> }>
  /** Show the scopes that hold memories, with their numbers. */
  scopes(fields?: { scope?: string; depth?: number | null; kinds?: Array<string> | null }): Promise<Array<ScopeCount>>
  /** Show the tags of memories, with their numbers. */
  tags(fields?: { scope?: string }): Promise<Array<TagCount>>
  /** Find the memories that answer a question, best first. */
  recall(fields: RecallRequest): Promise<HitsAnswer>
  /** `recall` for many questions at once. */
  recallMany(fields: RecallManyRequest): Promise<Array<HitsAnswer>>
  /** Say why a memory is or is not among the hits. */
  reviewExplain(fields: ReviewExplainRequest): Promise<Explanation>
  /** Print a briefing for an agent's task, as Markdown. */
  bootstrap(fields: BootstrapRequest): Promise<BootstrapText>
  /** Link two memories, so that recall of one reaches the other. */
  link(fields: LinkRequest): Promise<null>
  /** Remove the links from one memory to another. */
  unlink(fields: { source: string; target: string; type?: string | null }): Promise<number>
  /** Show the links of a memory, strongest first. */
  neighbors(fields: { id: string; types?: Array<string>; direction?: "out" | "in" | "both"; limit?: number | null }): Promise<Array<Link>>
  /** Show the memories that links lead to, nearest first. */
  traverse(fields: { id: string; depth?: number; types?: Array<string>; direction?: "out" | "in" | "both"; limit?: number | null }): Promise<Array<Reached>>
  /** Show what was said before and since, oldest first. */
  history(fields: { id: string; chain?: boolean }): Promise<Array<MemoryRecord>>
  /** Put memories in the place of others. */
  supersede(fields: SupersedeRequest): Promise<null>
  /** Undo a supersession, or restore an earlier text. */
  restore(fields: { id: string } & RestoreRequest): Promise<MemoryRecord>
  /** Show sessions, last used first. */
  sessionsList(fields?: { agent?: string | null; limit?: number | null }): Promise<Array<SessionInfo>>
  /** Open the session with this id, or create it; without an id it gets a UUID. */
  sessionsOpen(fields?: SessionsOpenRequest): Promise<OpenedSession>
  /** The existing session with this id. */
  sessionsGet(fields: { id: string; agent?: string | null }): Promise<OpenedSession>
  /** Find messages by meaning and words, best first. */
  sessionsSearch(fields: SessionsSearchRequest): Promise<Array<MessageHit>>
  /** Remove sessions that were not used for a time. */
  sessionsCleanup(fields: SessionsCleanupRequest): Promise<number>
  /** Show the messages of a session in order. */
  sessionMessages(fields: { id: string; limit?: number | null; skip_damaged?: boolean; agent?: string | null }): Promise<Array<{ [name: string]: unknown }>>
  /** Store messages at the end of a session, all or none; returns the position of the first. */
  sessionExtend(fields: { id: string } & SessionExtendRequest): Promise<number>
  /** Remove every message of a session, which stays. */
  sessionClear(fields: { id: string; agent?: string | null }): Promise<number>
  /** Remove the last message of a session, and show it. */
  sessionPop(fields: { id: string } & SessionPopRequest): Promise<{ [name: string]: unknown } | null>
  /** Remove a session. */
  sessionEnd(fields: { id: string } & SessionEndRequest): Promise<Snapshot | null>
  /** Read documents, and store what is new or has changed. */
  knowledgeIngest(fields: { name: string; title?: string | null; scope?: string; metadata?: { [name: string]: unknown } | null; data: string | Blob | Uint8Array }): Promise<IngestedDocument>
  /** Show the documents, in the order of their sources. */
  knowledgeList(fields?: { scope?: string | null; limit?: number | null }): Promise<Array<Document>>
  /** Find passages, best first, with path:line or page. */
  knowledgeSearch(fields: KnowledgeSearchRequest): Promise<HitsAnswer>
  /** Passages that answer a question, as Markdown for a prompt, within a budget of tokens. */
  knowledgeContext(fields: KnowledgeContextRequest): Promise<string>
  /** The document with this id, or with this source in a scope. */
  knowledgeGet(fields: { id: string; scope?: string }): Promise<Document>
  /** Delete documents with all their passages. */
  knowledgeDelete(fields: { id: string; scope?: string }): Promise<DeletedDocument>
  /** Show the state of the store, embedder, index and kernels. */
  storeStats(): Promise<Stats>
  /** Find memories that should not be there, with a remedy. */
  reviewAudit(fields?: ReviewAuditRequest): Promise<Audit>
  /** Write memories as JSON lines, CSV or text. */
  transferExport(fields?: { format?: string; vectors?: boolean; scope?: Array<string> | null; where?: { [name: string]: unknown } | null; kinds?: Array<string> | null; tags?: Array<string> | null; since?: string | null; until?: string | null; as_of?: string | null; valid_at?: string | null; include_superseded?: boolean; sessions?: boolean }): Promise<string>
  /** Read memories, all or none; those whose id exists are skipped. */
  transferImport(fields: { format?: string; scope?: string; data: string | Blob | Uint8Array }): Promise<Imported>
  /** The numbers of memories by day or month. */
  timeline(fields?: { bucket?: "day" | "week" | "month"; scope?: Array<string> | null; where?: { [name: string]: unknown } | null; kinds?: Array<string> | null; tags?: Array<string> | null; since?: string | null; until?: string | null; as_of?: string | null; valid_at?: string | null; include_superseded?: boolean; sessions?: boolean }): Promise<Array<TimelineBucket>>
  /** Differences by words between each version of a memory and the one before it. */
  diffs(fields: { id: string }): Promise<Array<VersionDiff>>
}
