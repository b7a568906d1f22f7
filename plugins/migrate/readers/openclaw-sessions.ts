import type { ForeignDatabase } from 'svc/internal'
import { isObject, readJson, Refusal } from 'svc/sdk'
import type { HomeDraft, Transcript } from '../model.ts'
import type { ReadLimits } from '../source/limits.ts'
import { readEvents, readLines } from '../source/messages.ts'
import { readFields } from '../source/parse.ts'
import { fieldsOf, textOf, timeOf } from '../source/values.ts'
import type { Fields } from '../source/values.ts'
import type { ReaderDeps } from './openclaw.ts'

/** A conversation whose time nobody wrote down. */
const UNKNOWN_TIME = '2024-01-01T00:00:00.000Z'

/**
 * Conversations: `agents/<id>/sessions/<session>.jsonl` with the names in `sessions.json`; since version 2026.7.2 the
 * table `transcript_events` of `agents/<id>/agent/openclaw-agent.sqlite`; in the first versions `sessions/<key>.jsonl`.
 */
export async function readSessions(draft: HomeDraft, deps: ReaderDeps): Promise<void> {
  const { folder } = deps
  for (const { key: agent } of draft.agents) {
    const known = new Set<string>()
    await readDatabase(draft, deps, agent, known)
    await readFolder(draft, deps, `agents/${agent}/sessions`, () => agent, known)
  }
  const first = draft.agents[0]?.key
  await readFolder(
    draft,
    deps,
    'sessions',
    (name) => {
      const [, id] = /^agent:([^:]+):/.exec(name) ?? []
      return id === undefined ? first : draft.agents.find(({ key }) => key === id)?.key
    },
    new Set(),
  )
  for (const { name, isFolder } of await folder.list('agents'))
    if (
      isFolder &&
      !draft.agents.some(({ key }) => key === name) &&
      (await folder.hasFolder(`agents/${name}/sessions`))
    )
      draft.leave('session', `agents/${name}/sessions`, 'its agent is not in the configuration')
}

async function readFolder(
  draft: HomeDraft,
  { folder, limits }: ReaderDeps,
  below: string,
  agentOf: (name: string) => string | undefined,
  known: ReadonlySet<string>,
): Promise<void> {
  const entries = await folder.list(below)
  if (entries.length === 0) return
  const labels = labelsOf(
    (await folder.has(`${below}/sessions.json`)) ? await readFields(folder, `${below}/sessions.json`) : {},
  )
  for (const { name, isFolder } of entries) {
    const [, id] = /^(.+)\.jsonl$/.exec(name) ?? []
    if (isFolder || id === undefined || known.has(id)) continue
    const agent = agentOf(id)
    const file = `${below}/${name}`
    if (agent === undefined) draft.leave('session', file, 'its agent is not in the configuration')
    else if (draft.sessions.length >= limits.maxSessions)
      return draft.leave(
        'session',
        below,
        `it has more than ${limits.maxSessions} sessions: raise plugins.migrate.max_sessions`,
      )
    else
      draft.sessions.push({
        key: `${agent}/${id}`,
        agent,
        label: labels.get(id) ?? (below === 'sessions' ? id : undefined),
        async read(): Promise<Transcript> {
          const text = await folder.text(file)
          if (text === undefined) throw new Refusal('invalid_request', reasonOf(folder.problems, file))
          const { values, broken } = readLines(text)
          const transcript = readEvents(values, UNKNOWN_TIME, limits.maxMessages)
          if (broken === 0) return transcript
          return { ...transcript, warnings: [...transcript.warnings, `${broken} lines are no JSON and are left out`] }
        },
      })
  }
}
const reasonOf = (problems: readonly { readonly name: string; readonly reason: string }[], file: string): string =>
  problems.find(({ name }) => name === file)?.reason ?? 'it is not there any more'

/** Names of conversations by their id. */
function labelsOf(file: Fields | undefined): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(file ?? {}).flatMap(([key, entry]) => {
      const id = textOf(fieldsOf(entry)['sessionId'])
      return id === undefined ? [] : [[id, key]]
    }),
  )
}

async function readDatabase(
  draft: HomeDraft,
  { folder, scratch, limits }: ReaderDeps,
  agent: string,
  known: Set<string>,
): Promise<void> {
  const file = `agents/${agent}/agent/openclaw-agent.sqlite`
  const database = await scratch.open(folder, file)
  if (!database || database.columns('transcript_events').length === 0) return
  const labels = new Map<string, string>()
  for (const table of ['session_entries', 'sessions', 'session_windows'])
    for (const row of database.rows(table, ['session_id', 'session_key']))
      if (row['session_id'] && row['session_key']) labels.set(String(row['session_id']), String(row['session_key']))
  for (const { session_id: value } of database.rows('transcript_events', ['session_id'])) {
    const id = String(value)
    if (known.has(id)) continue
    known.add(id)
    if (draft.sessions.length >= limits.maxSessions)
      return draft.leave(
        'session',
        file,
        `it has more than ${limits.maxSessions} sessions: raise plugins.migrate.max_sessions`,
      )
    draft.sessions.push({
      key: `${agent}/${id}`,
      agent,
      label: labels.get(id),
      read: async () => readEvents(eventsOf(database, id, limits), UNKNOWN_TIME, limits.maxMessages),
    })
  }
}

function eventsOf(
  database: ForeignDatabase,
  id: string,
  { maxFileBytes: max }: Pick<ReadLimits, 'maxFileBytes'>,
): readonly Fields[] {
  const events: Fields[] = []
  let bytes = 0
  for (const row of database.rowsOf('transcript_events', ['event_json', 'created_at'], { session_id: id }, ['seq'])) {
    const text = String(row['event_json'])
    bytes += Buffer.byteLength(text)
    if (bytes > max)
      throw new Refusal('invalid_request', `it has more than the ${max} bytes of plugins.migrate.max_file_bytes`)
    let event: unknown
    try {
      event = readJson(text)
    } catch {
      continue /* a line that is no JSON says nothing */
    }
    if (isObject(event)) events.push({ timestamp: timeOf(Number(row['created_at'])), ...event })
  }
  return events
}
