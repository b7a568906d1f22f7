import type { AuditEntry, AuditFeed } from '../audit/contract.ts'

/** Entries of the trail that are looked through, the newest. */
const MAX_ENTRIES = 50_000
const PAGE = 1_000
/** Entries that are answered, the newest. */
const MAX_SHOWN = 100
/** What outlasts a turn. */
const LASTING: ReadonlySet<string> = new Set([
  'agent_spawned',
  'goal_changed',
  'schedule_changed',
  'task_posted',
  'trigger_changed',
  'workflow_changed',
])

export interface Effect {
  readonly event: string
  readonly agent_id: string
  readonly details: string
  readonly timestamp: string
}

/**
 * What a device, and turns that it began, made or changed and what stays when it is removed, as the trail says it: the
 * newest last. Some of it may be gone by now.
 */
export async function effectsOf(
  feed: AuditFeed,
  deviceId: string,
): Promise<{ readonly effects: readonly Effect[]; readonly total: number }> {
  const turns = new Set<string>()
  const lasting: AuditEntry[] = []
  const newest = await feed.newest()
  for (let after = Math.max(0, newest - MAX_ENTRIES); after < newest;) {
    const page = await feed.following(after, PAGE)
    for (const entry of page) {
      // A turn has one entry, when it ends, with whoever sent the message.
      const turn = /^turn (\S+) by /.exec(entry.details)?.[1]
      if (turn !== undefined && deviceOf(entry) === deviceId) turns.add(turn)
      if (LASTING.has(entry.event)) lasting.push(entry)
    }
    after = page.at(-1)?.id ?? newest
  }
  const own = lasting.filter((entry) => deviceOf(entry) === deviceId || turns.has(turnOf(entry) ?? ''))
  const effects = own
    .slice(-MAX_SHOWN)
    .map(({ event, agentId, details, timestamp }) => ({ event, agent_id: agentId, details, timestamp }))
  return { effects, total: own.length }
}

/** The id at the end, behind a name that anybody may have chosen. */
const deviceOf = ({ actor }: AuditEntry): string | undefined => /^device .*\(([^()]+)\) at [^()]*$/.exec(actor)?.[1]
const turnOf = ({ actor }: AuditEntry): string | undefined => / in (\S+)$/.exec(actor)?.[1]
