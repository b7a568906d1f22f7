import type { Hooks, Logger } from 'svc/sdk'
import { Refusal } from 'svc/sdk'
import type { AuditFeed } from '../audit/contract.ts'
import type { DeviceWork } from './contract.ts'
import type { Caller, Devices } from './devices.ts'
import { effectsOf } from './effects.ts'

/** How often the removal is tried while what the device began changes. */
const MAX_TRIES = 5

export interface RemovalDeps {
  readonly devices: Pick<Devices, 'credentialOf' | 'remove' | 'stopEffects'>
  readonly feed: AuditFeed
  readonly hooks: Pick<Hooks, 'apply'>
  readonly log: Pick<Logger, 'error'>
}

/**
 * Removes a device, and with `stop` what it began and what goes on, in one batch. Throws `device_not_found`, with `stop`
 * only where nothing goes on that it began.
 */
export async function removeDevice(deps: RemovalDeps, by: Caller, id: string, stop: boolean) {
  const { devices } = deps
  const of = { id, credential: devices.credentialOf(id) }
  if (stop) return stopAndRemove(deps, by, of)
  const { effects, total, work } = await effectsOf(deps, of)
  await devices.remove(id, by, total === 0 ? '' : `; ${total} entries tell what it made, which stays`)
  return toAnswer(id, { effects, total, staying: work })
}

async function stopAndRemove(
  deps: RemovalDeps,
  by: Caller,
  of: { readonly id: string; readonly credential: string | undefined },
) {
  const { devices, log } = deps
  const stopped = new Map<string, DeviceWork>()
  let isPaired = of.credential !== undefined
  for (let tries = 1; ; tries++) {
    const { effects, total, work } = await effectsOf(deps, of)
    const open = work.filter((one) => !stopped.has(`${one.kind} ${one.id}`))
    // Looked at once more after the removal: a turn of it may have made something meanwhile.
    if (open.length === 0 && !isPaired && (stopped.size > 0 || of.credential !== undefined))
      return toAnswer(of.id, { effects, total, stopped: [...stopped.values()] })
    const statements = open.flatMap((one) => one.statements)
    try {
      if (isPaired || open.length === 0) await devices.remove(of.id, by, noteOf(open), statements)
      else await devices.stopEffects(of.id, by, noteOf(open), statements)
    } catch (error) {
      // Something of it ended or changed since it was read.
      if (error instanceof Refusal || tries >= MAX_TRIES) throw error
      continue
    }
    isPaired = false
    for (const one of open) {
      stopped.set(`${one.kind} ${one.id}`, one)
      await one
        .after?.()
        .catch((error: unknown) => log.error(`${one.kind} ${one.id} of device ${of.id} could not be ended`, error))
    }
  }
}

/** `; what it began is ended: agent 1, schedule 2`. */
function noteOf(work: readonly DeviceWork[]): string {
  if (work.length === 0) return ''
  const kinds = [...new Set(work.map(({ kind }) => kind))].toSorted()
  const counts = kinds.map((kind) => `${kind} ${work.filter((one) => one.kind === kind).length}`)
  return `; what it began is ended: ${counts.join(', ')}`
}

interface Outcome {
  readonly effects: Awaited<ReturnType<typeof effectsOf>>['effects']
  readonly total: number
  readonly stopped?: readonly DeviceWork[]
  readonly staying?: readonly DeviceWork[]
}
function toAnswer(id: string, { effects, total, stopped = [], staying = [] }: Outcome) {
  const shown = (work: readonly DeviceWork[]) =>
    work
      .map(({ kind, id: of, name, agentId }) => ({ kind, id: of, name, agent_id: agentId }))
      .toSorted((a, b) => (a.kind < b.kind ? -1 : Number(a.kind > b.kind)))
  return {
    ok: true as const,
    device_id: id,
    effects: [...effects],
    effects_total: total,
    stopped: shown(stopped),
    staying: shown(staying),
  }
}
