import { defineRoute } from 'svc/sdk'
import type { Logs, NumberedLine } from 'svc/internal'
import type { AnyRoute, ServerSentEvent } from 'svc/sdk'
import * as v from 'valibot'
import { LogEvent, LogQuery } from './schema.ts'

/** How many lines a slow reader may be behind; then the oldest are dropped, and it gets their number. */
const MAX_QUEUED_LINES = 1_000
const ranks = { fatal: 0, error: 0, warn: 1, info: 2, debug: 3, trace: 4 } as const

/** The log as it is written (Interface 4.9 and 6.3). */
export function logRoutes(logs: Logs): readonly AnyRoute[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/logs/stream',
      summary: 'Follow the log',
      auth: 'bearer',
      effect: 'read',
      cost: 5,
      description:
        'The last lines, then each as it is written, secrets masked. No line below the level of the daemon ' +
        'itself (`log_level`). A reader that is too slow misses lines and gets their number.',
      query: LogQuery,
      returns: v.unknown(),
      streams: LogEvent,
      feed: true,
      handle({ query: { level, filter, tail, follow: goesOn }, signal }) {
        const matches = ({ line }: NumberedLine): boolean =>
          ranks[line.level] <= ranks[level] &&
          (filter === undefined || `${line.tag} ${line.message}`.toLowerCase().includes(filter.toLowerCase()))
        return goesOn === 'true' ? follow(logs, matches, tail, signal) : showLast(logs, matches, tail)
      },
    }),
  ]
}

type Matches = (line: NumberedLine) => boolean

function lastOf(logs: Logs, matches: Matches, tail: number): NumberedLine[] {
  return tail === 0 ? [] : logs.recent(Infinity).filter(matches).slice(-tail)
}

async function* showLast(logs: Logs, matches: Matches, tail: number): AsyncGenerator<ServerSentEvent> {
  for (const line of lastOf(logs, matches, tail)) yield { data: JSON.stringify(toEvent(line, 0)) }
}

async function* follow(
  logs: Logs,
  matches: Matches,
  tail: number,
  signal: AbortSignal,
): AsyncGenerator<ServerSentEvent> {
  const waiting = lastOf(logs, matches, tail)
  let missed = 0
  let wake = (): void => {}
  const leave = logs.follow((line) => {
    if (!matches(line)) return
    if (waiting.length >= MAX_QUEUED_LINES) {
      waiting.shift()
      missed++
    }
    waiting.push(line)
    wake()
  })
  const onAbort = (): void => wake()
  signal.addEventListener('abort', onAbort)
  try {
    while (!signal.aborted) {
      const next = waiting.shift()
      if (next) {
        yield { data: JSON.stringify(toEvent(next, missed)) }
        missed = 0
      } else
        await new Promise<void>((resolve) => {
          wake = resolve
        })
    }
  } finally {
    signal.removeEventListener('abort', onAbort)
    leave()
  }
}

/** Clients of compatible services read `action`, `detail` and `agent_id`. */
function toEvent({ seq, line }: NumberedLine, missed: number): v.InferOutput<typeof LogEvent> {
  const agent = line.fields?.['agentId']
  return {
    seq,
    timestamp: line.time.toISOString(),
    level: line.level,
    tag: line.tag,
    message: line.message,
    ...(line.fields && { fields: { ...line.fields } }),
    action: line.tag === '' ? 'daemon' : line.tag,
    detail: line.message,
    agent_id: typeof agent === 'string' ? agent : '',
    ...(missed > 0 && { missed }),
  }
}
