import type { DeviceWork, DeviceWorkAsked } from '../pairing/contract.ts'
import type { Runtime } from './runtime.ts'
import { describe } from './service.ts'

/** The newest events of a trigger whose turns are looked at. */
const MAX_FIRINGS = 1_000

/** Adds the triggers that a device made. */
export async function addTriggers(
  { triggers }: Pick<Runtime, 'triggers'>,
  asked: DeviceWorkAsked,
): Promise<DeviceWorkAsked> {
  const found: DeviceWork[] = []
  const turns: string[] = []
  for (const { event, details } of asked.entries) {
    const id = event === 'trigger_changed' ? /^trigger (\S+) for agent "/.exec(details)?.[1] : undefined
    const trigger = id === undefined ? undefined : await triggers.find(id)
    if (!trigger) continue
    // A turn has the id of its own, a run of a workflow that of the firing.
    const fired = await triggers.history(trigger.id, Number.MAX_SAFE_INTEGER, MAX_FIRINGS)
    turns.push(...fired.flatMap((firing) => [firing.turnId, firing.id]))
    if (!trigger.enabled) continue
    found.push({
      kind: 'trigger',
      id: trigger.id,
      name: describe(trigger),
      agentId: trigger.agentId,
      statements: triggers.disabling(trigger, asked.reason),
      after: () => triggers.stopFirings(trigger.id),
    })
  }
  return { ...asked, found: [...asked.found, ...found], turns: [...asked.turns, ...turns] }
}
