import type { Hooks } from 'svc/sdk'
import type { AuditEntry, AuditFeed } from '../audit/contract.ts'
import { DeviceWorkListed } from './contract.ts'
import type { DeviceWork } from './contract.ts'

/** Entries of the trail that are looked through, the newest. */
const MAX_ENTRIES = 50_000
const PAGE = 1_000
/** Entries that are answered, the newest. */
const MAX_SHOWN = 100
/** Times that plugins are asked what turns led to that they named themselves. */
const MAX_ROUNDS = 20
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
export interface EffectsDeps {
  readonly feed: Pick<AuditFeed, 'following' | 'newest'>
  readonly hooks: Pick<Hooks, 'apply'>
}
/** `credential`: what its turns remember of it; none is known of a device that is gone. */
export interface OfDevice {
  readonly id: string
  readonly credential?: string | undefined
}
export interface Effects {
  /** Entries about what it made or changed, the newest last; some of it may be gone by now. */
  readonly effects: readonly Effect[]
  readonly total: number
  /** What of it goes on. */
  readonly work: readonly DeviceWork[]
}

/**
 * What a device, and turns that it began, made or changed, as the trail says it. To these turns belong those of
 * schedules, triggers, tasks and workflows that the device is behind.
 */
export async function effectsOf({ feed, hooks }: EffectsDeps, { id, credential }: OfDevice): Promise<Effects> {
  const trail = await readTrail(feed)
  const turns = new Set<string>()
  for (let round = 1; ; round++) {
    const own = ownOf(trail, id, turns)
    const known = turns.size
    const { found, turns: begun } = await hooks.apply(DeviceWorkListed, {
      entries: own,
      credential,
      reason: `device ${id}, which began it, was removed`,
      found: [],
      turns: [],
    })
    for (const turn of begun) turns.add(turn)
    if (turns.size > known && round < MAX_ROUNDS) continue
    const effects = own
      .slice(-MAX_SHOWN)
      .map(({ event, agentId, details, timestamp }) => ({ event, agent_id: agentId, details, timestamp }))
    return { effects, total: own.length, work: found }
  }
}

/** Entries about the end of turns, and about what outlasts one. */
async function readTrail(feed: EffectsDeps['feed']): Promise<readonly AuditEntry[]> {
  const trail: AuditEntry[] = []
  const newest = await feed.newest()
  for (let after = Math.max(0, newest - MAX_ENTRIES); after < newest;) {
    const page = await feed.following(after, PAGE)
    trail.push(...page.filter((entry) => endedTurn(entry) !== undefined || LASTING.has(entry.event)))
    after = page.at(-1)?.id ?? newest
  }
  return trail
}

/** Adds the turns of the device to `turns`. */
function ownOf(trail: readonly AuditEntry[], id: string, turns: Set<string>): readonly AuditEntry[] {
  const isOwn = (entry: AuditEntry): boolean => deviceOf(entry) === id || turns.has(turnOf(entry) ?? '')
  for (let known = -1; known < turns.size;) {
    known = turns.size
    for (const entry of trail) {
      const turn = endedTurn(entry)
      if (turn !== undefined && isOwn(entry)) turns.add(turn)
    }
  }
  return trail.filter((entry) => LASTING.has(entry.event) && isOwn(entry))
}

/** A turn has one entry, when it ends, with whoever sent the message. */
const endedTurn = ({ details }: AuditEntry): string | undefined => /^turn (\S+) by /.exec(details)?.[1]
/** The id at the end, behind a name that anybody may have chosen. */
const deviceOf = ({ actor }: AuditEntry): string | undefined => /^device .*\(([^()]+)\) at [^()]*$/.exec(actor)?.[1]
const turnOf = ({ actor }: AuditEntry): string | undefined => / in (\S+)$/.exec(actor)?.[1]
