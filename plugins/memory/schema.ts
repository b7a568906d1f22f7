import * as v from 'valibot'
import { JsonObject } from 'svc/internal'
import { MEMORY_LEVELS } from './contract.ts'

const optional = v.exactOptional
export const uuid = (message: string) => v.pipe(v.string(), v.uuid(message), v.toLowerCase())
export const level = v.picklist(MEMORY_LEVELS, `Expected one of ${MEMORY_LEVELS.join(', ')}`)
const whole = v.pipe(v.string(), v.regex(/^\d{1,7}$/, 'Expected a whole number from 0 to 9999999'))
/** Anything else would come back from the database as another text, or not be stored at all. */
export const wellFormed = v.check(
  (value: string) => value.isWellFormed() && !value.includes('\0'),
  'must be well-formed Unicode without NUL',
)
const content = v.pipe(v.string(), v.trim(), v.nonEmpty('must not be empty'), wellFormed)
export const name = v.pipe(v.string(), v.nonEmpty(), v.maxLength(256), wellFormed)
export const confidence = v.pipe(v.number(), v.minValue(0), v.maxValue(1))
const tags = v.array(v.pipe(v.string(), v.nonEmpty(), v.maxLength(64), wellFormed))
const metadata = JsonObject

const NewEntryFields = v.object({
  content: optional(v.pipe(content, v.description('What is known. Required without `messages`.'))),
  messages: optional(
    v.pipe(
      v.array(v.object({ role: name, content: v.pipe(v.string(), wellFormed) })),
      v.minLength(1),
      v.maxLength(100),
      v.description('A conversation, with `agent_id` and `user_id` beside it and nothing else.'),
    ),
  ),
  agent_id: optional(
    v.pipe(name, v.description('Id or name of the agent that is to know it; the default agent if absent.')),
  ),
  user_id: optional(v.pipe(name, v.description('Whom it is about and for; the owner of the daemon if absent.'))),
  session_id: optional(v.pipe(name, v.description('Required at level session.'))),
  tags: optional(tags),
  level: optional(v.pipe(level, v.description('Default: user with a user_id, else agent.'))),
  category: optional(v.pipe(v.string(), v.nonEmpty(), v.maxLength(64), wellFormed)),
  confidence: optional(confidence),
  metadata: optional(metadata),
  supersedes: optional(v.pipe(uuid('Invalid memory ID'), v.description('The memory that this one replaces.'))),
})
export const NewEntry = v.pipe(
  NewEntryFields,
  v.check(
    ({ content: text, messages }) => (text === undefined) !== (messages === undefined),
    'Expected either content or messages',
  ),
  v.check(
    ({ messages, agent_id: _agent, user_id: _user, ...rest }) =>
      messages === undefined || Object.values(rest).every((value) => value === undefined),
    'messages go with agent_id and user_id alone',
  ),
)
export const Change = v.object({ content })
export const Ids = v.object({
  ids: v.pipe(v.array(v.pipe(v.string(), v.nonEmpty(), v.maxLength(64))), v.maxLength(1_000)),
})

export const time = v.pipe(
  v.string(),
  v.isoTimestamp('Expected a time such as 2026-01-31T12:00:00Z'),
  v.check((text) => !Number.isNaN(Date.parse(text)), 'Expected a time such as 2026-01-31T12:00:00Z'),
  v.check((text) => Date.parse(text) <= Date.now(), 'is in the future'),
  v.transform((text) => new Date(text).toISOString()),
)
export const ImportedEntry = v.object({
  content,
  level: optional(level),
  category: v.nullish(v.pipe(v.string(), v.nonEmpty(), v.maxLength(64), wellFormed)),
  confidence: optional(confidence),
  tags: optional(tags),
  metadata: optional(metadata),
  created_at: optional(time),
  key: v.nullish(name),
  user_id: v.nullish(name),
  session_id: v.nullish(name),
})
const BackupEntry = v.looseObject({ id: v.string() })
const Backup = v.object({
  restore: v.pipe(v.literal(true), v.description('Brings an export back as a backup, with ids, sources and history.')),
  dry_run: optional(v.pipe(v.boolean(), v.description('Only says what would be restored.'))),
  memories: v.array(BackupEntry),
  superseded: optional(v.array(BackupEntry)),
})
/** An export may be sent as it is. What is not a whole backup is never taken for an import without one. */
export const Import = v.union(
  [
    v.array(ImportedEntry),
    v.object({
      restore: optional(v.literal(false)),
      dry_run: optional(v.literal(false)),
      memories: v.array(ImportedEntry),
    }),
    Backup,
  ],
  wrongImport,
)
export const Imported = v.object({
  imported: v.number(),
  agent_id: v.string(),
  unchanged: optional(v.pipe(v.number(), v.description('With `restore`: how many are there as the backup has them.'))),
  conflicts: optional(
    v.pipe(
      v.array(v.object({ id: v.string(), reason: v.string() })),
      v.description('With `restore`: those that are left out.'),
    ),
  ),
  dry_run: optional(v.boolean()),
})
/** Which entry: a union says only that no shape fits. */
function wrongImport({ input, issues }: v.UnionIssue<v.BaseIssue<unknown>>): string {
  const isList = Array.isArray(input)
  const wrong = issues?.find(({ path }) => path && (isList ? typeof path[0].key === 'number' : path.length > 1))
  return wrong ? `${v.getDotPath(wrong)}: ${wrong.message}` : 'Expected an array of memories, or an export'
}
export type ImportedEntry = v.InferOutput<typeof ImportedEntry>

export const MemoryParams = v.object({ memory_id: uuid('Invalid memory ID') })
export const UserParams = v.object({
  user_id: v.pipe(name, v.description('An id, or `me`: what is kept for the caller.')),
})
export const PageQuery = v.object({ limit: v.optional(whole), offset: v.optional(whole) })
export const LevelParams = v.object({ id: uuid('Invalid agent ID'), level })
export const ListQuery = v.object({
  category: v.optional(v.string()),
  level: v.optional(level),
  limit: v.optional(whole),
  offset: v.optional(whole),
})
const searchEntries = {
  q: v.pipe(v.string(), v.trim(), v.nonEmpty('Expected something to look for'), v.maxLength(2_000)),
  level: v.optional(level),
  category: v.optional(v.string()),
  limit: v.optional(whole),
}
export const AgentSearchQuery = v.object(searchEntries)
export const SearchQuery = v.object({ ...searchEntries, agent_id: v.optional(name) })
export const CountQuery = v.object({ level: v.optional(level) })

const orNull = v.nullable(v.string())
export const SourceView = v.looseObject({ kind: v.string(), labels: v.array(v.string()) })
export const EntryView = v.object({
  id: v.string(),
  agent_id: v.string(),
  user_id: orNull,
  session_id: orNull,
  content: v.string(),
  level,
  category: orNull,
  key: v.pipe(orNull, v.description('The name of a note.')),
  tags: v.array(v.string()),
  metadata,
  source: v.pipe(SourceView, v.description('Where it is known from. With labels it is not the own word of a person.')),
  confidence: v.number(),
  strength: v.pipe(v.number(), v.description('The confidence after its decay.')),
  created_at: v.string(),
  updated_at: v.string(),
  accessed_at: v.string(),
  access_count: v.number(),
  supersedes: orNull,
})
export type EntryView = v.InferOutput<typeof EntryView>
export const FoundView = v.object({ ...EntryView.entries, score: v.number(), found_by: v.array(v.string()) })
export const Found = v.object({
  memories: v.array(FoundView),
  index: v.pipe(
    v.picklist(['complete', 'words_only', 'filling']),
    v.description(
      'Whether all memories were in the indexes, or some could be found by their words only, or those of an older ' +
        'version are still being added.',
    ),
  ),
})
export const Listed = v.object({
  memories: v.array(EntryView),
  total: v.number(),
  offset: v.number(),
  limit: v.number(),
})
export const Users = v.object({
  users: v.array(v.object({ user_id: v.string(), count: v.number(), newest_at: v.string() })),
  total: v.number(),
  offset: v.number(),
  limit: v.number(),
  me: orNull,
})
const Share = v.number()
export const ConfigView = v.object({
  embedding_provider: v.string(),
  embedding_model: v.string(),
  embedding_api_key_env: v.null(),
  decay_rate: Share,
  proactive_memory: v.object({
    enabled: v.literal(true),
    auto_memorize: v.boolean(),
    auto_retrieve: v.boolean(),
    extraction_model: v.string(),
    extraction_threshold: Share,
    extract_categories: v.array(v.string()),
    max_retrieve: v.number(),
    duplicate_threshold: Share,
    session_ttl_hours: v.number(),
    max_memories_per_agent: v.number(),
  }),
})
/** What GET shows may be sent back. */
export const ConfigChange = v.object({
  ...v.partial(v.omit(ConfigView, ['proactive_memory'])).entries,
  proactive_memory: v.optional(v.partial(ConfigView.entries.proactive_memory)),
})
export const ConfigChanged = v.object({
  config: ConfigView,
  changed: v.pipe(v.array(v.string()), v.description('Keys that were written into config.toml.')),
  overridden: v.pipe(v.record(v.string(), v.string()), v.description('Keys of them that something else overrides.')),
})
export const Stats = v.object({
  total: v.number(),
  user_count: v.number(),
  session_count: v.number(),
  agent_count: v.number(),
  categories: v.record(v.string(), v.number()),
  without_vector: v.pipe(v.number(), v.description('Memories that are found by their words only so far.')),
  without_words: v.pipe(
    v.number(),
    v.description('Memories of an older version whose words are not in the index yet.'),
  ),
  enabled: v.boolean(),
  auto_memorize_enabled: v.boolean(),
  auto_retrieve_enabled: v.boolean(),
  llm_extraction: v.boolean(),
})
export const HistoryView = v.object({
  memory_id: v.string(),
  versions: v.array(
    v.object({
      version: v.number(),
      memory_id: v.string(),
      content: v.string(),
      source: v.pipe(
        v.nullable(SourceView),
        v.description('Where this content is known from; null where that was not recorded.'),
      ),
      written_at: v.string(),
      replaced_at: orNull,
      replaced_by: orNull,
    }),
  ),
  version_count: v.number(),
  deleted_at: orNull,
  deleted_by: orNull,
})
const ExportedEntry = v.object({
  content: v.string(),
  level,
  category: orNull,
  confidence: v.number(),
  tags: v.array(v.string()),
  key: orNull,
  user_id: orNull,
  session_id: orNull,
  created_at: v.string(),
  updated_at: v.string(),
  metadata,
})
const BackedUpEntry = v.object({
  ...ExportedEntry.entries,
  ...v.pick(EntryView, ['id', 'source', 'strength', 'accessed_at', 'access_count', 'supersedes']).entries,
  versions: v.array(v.omit(HistoryView.entries.versions.item, ['version', 'memory_id'])),
})
export const AgentExport = v.object({
  agent_id: v.string(),
  count: v.number(),
  memories: v.array(BackedUpEntry),
  superseded: v.pipe(
    v.array(v.object({ ...BackedUpEntry.entries, superseded_by: v.string() })),
    v.description('What memories of the list have superseded.'),
  ),
})
export const UserExport = v.object({
  user_id: orNull,
  count: v.number(),
  memories: v.array(v.object({ ...ExportedEntry.entries, agent_id: v.string() })),
})
