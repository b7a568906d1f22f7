import * as v from 'valibot'
import { escapeControls, renderTable, renderTime } from 'svc/cli'

const orNull = v.nullable(v.string())
export const Entry = v.looseObject({
  id: v.string(),
  agent_id: v.string(),
  user_id: orNull,
  content: v.string(),
  level: v.string(),
  category: orNull,
  key: orNull,
  tags: v.array(v.string()),
  source: v.looseObject({ kind: v.string(), labels: v.array(v.string()) }),
  confidence: v.number(),
  strength: v.number(),
  created_at: v.string(),
  updated_at: v.string(),
})
export type Entry = v.InferOutput<typeof Entry>

const MAX_SHOWN_CHARS = 100

/** A line for each. */
export function tableOf(entries: readonly Entry[]): string {
  return renderTable(
    ['MEMORY', 'LEVEL', 'FROM', 'LEARNT', 'ID'],
    entries.map((entry) => [
      shorten(entry.key === null ? entry.content : `${entry.key}: ${entry.content}`),
      entry.level,
      sourceOf(entry),
      renderTime(entry.created_at),
      entry.id,
    ]),
  )
}
/** Where it is known from, in a few words. */
export function sourceOf({ source }: Pick<Entry, 'source'>): string {
  const detail = [source['person'], source['tool'], source['file']].find((value) => typeof value === 'string')
  const from = detail === undefined ? source.kind : `${source.kind} ${String(detail)}`
  return escapeControls(source.labels.length === 0 ? from : `${from} (${source.labels.join(', ')})`)
}
function shorten(text: string): string {
  const line = escapeControls(text)
  return line.length > MAX_SHOWN_CHARS ? `${line.slice(0, MAX_SHOWN_CHARS - 1)}…` : line
}

/** The beginning of a sentence about so many. */
export const memoriesAre = (count: number): string => (count === 1 ? '1 memory is' : `${count} memories are`)
export const memories = (count: number): string => (count === 1 ? '1 memory' : `${count} memories`)

/** The `limit` of a query as the API takes it. */
export const limitArg = { type: 'string', description: 'How many at most', valueHint: '10', default: '10' } as const
export const levelArg = { type: 'string', description: 'Only user, session or agent', valueHint: 'level' } as const
export const agentArg = { type: 'string', description: 'Name or id of the agent', valueHint: 'name' } as const

export function queryOf(values: Readonly<Record<string, string | undefined>>): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(values)) if (value !== undefined) query.set(name, value)
  return query.toString()
}
