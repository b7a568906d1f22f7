import type { ForeignDatabase } from 'svc/internal'
import type { HomeDraft } from '../model.ts'
import { readJson } from 'svc/sdk'
import { toTranscript } from '../source/messages.ts'
import type { RawMessage } from '../source/messages.ts'
import { fieldsOf, listOf, textOf, timeOf } from '../source/values.ts'
import { decodePacked } from './message-pack.ts'
import type { ReaderDeps } from './openclaw.ts'

const UNKNOWN_TIME = '2024-01-01T00:00:00.000Z'
const MAX_MEMORY = 4_000

/** Table `sessions`: the messages of each in one column. They have the time of the conversation and none of their own. */
export async function readSessions(
  draft: HomeDraft,
  { limits }: ReaderDeps,
  database: ForeignDatabase,
  ids: ReadonlyMap<string, string>,
): Promise<void> {
  const hasLabel = database.columns('sessions').includes('label')
  for (const row of database.rows('sessions', ['id', 'agent_id', 'created_at', ...(hasLabel ? ['label'] : [])])) {
    const id = String(row['id'])
    const agent = ids.get(String(row['agent_id']))
    if (agent === undefined || !draft.agents.some(({ key }) => key === agent)) {
      draft.leave('session', id, 'its agent is not there')
      continue
    }
    if (draft.sessions.length >= limits.maxSessions)
      return draft.leave(
        'session',
        'sessions',
        `there are more than ${limits.maxSessions}: raise plugins.migrate.max_sessions`,
      )
    const createdAt = timeOf(row['created_at']) ?? UNKNOWN_TIME
    draft.sessions.push({
      key: id,
      agent,
      label: textOf(row['label']),
      async read() {
        const [found] = [...database.rowsOf('sessions', ['messages'], { id }, [])]
        const raw = listOf(await decodePacked(found?.['messages'])).map(toRaw)
        return toTranscript(raw, createdAt, limits.maxMessages)
      },
    })
  }
}
function toRaw(value: unknown): RawMessage {
  const { role, content, timestamp } = fieldsOf(value)
  return { role: textOf(role) ?? '', content, at: timeOf(timestamp) }
}

/** Of the system itself, such as schedules that are read from a file. */
const OWN_KEY = /^__|^(openfang|librefang)[._:]/
/** Table `kv_store`: JSON under a key of an agent. */
export function readValues(draft: HomeDraft, database: ForeignDatabase, ids: ReadonlyMap<string, string>): void {
  for (const row of database.rows('kv_store', ['agent_id', 'key', 'value'])) {
    const [agent, key] = [ids.get(String(row['agent_id'])), String(row['key'])]
    const value = valueOf(row['value'])
    if (OWN_KEY.test(key)) draft.leave('value', key, 'it is a value of the other system itself')
    else if (agent === undefined) draft.leave('value', key, 'its agent is not there')
    else if (value === undefined) draft.leave('value', `${agent}: ${key}`, 'it is no JSON')
    else draft.values.push({ agent, key, value: value.json })
  }
}
function valueOf(stored: unknown): { readonly json: unknown } | undefined {
  const text = stored instanceof Uint8Array ? new TextDecoder().decode(stored) : String(stored)
  try {
    return { json: readJson(text) }
  } catch {
    // A text that nobody put quotes around, as older versions wrote it.
    return typeof stored === 'string' ? { json: stored } : undefined
  }
}

/** Table `memories`; those that were deleted there stay deleted. */
export function readMemories(draft: HomeDraft, database: ForeignDatabase, ids: ReadonlyMap<string, string>): void {
  const columns = ['id', 'agent_id', 'content', 'scope', 'confidence', 'deleted']
  for (const row of database.rows('memories', columns)) {
    const agent = ids.get(String(row['agent_id']))
    const content = textOf(row['content'])?.toWellFormed().replaceAll('\0', '').slice(0, MAX_MEMORY)
    const key = String(row['id'])
    if (Number(row['deleted']) !== 0 || content === undefined) continue
    if (agent === undefined) draft.leave('memory', key, 'its agent is not there')
    else {
      const confidence = Math.min(1, Math.max(0, Number(row['confidence'] ?? 1) || 0))
      const category = textOf(row['scope'])
      if (!draft.remember({ key, agent, content, confidence, category, file: 'the database' })) return
    }
  }
}
