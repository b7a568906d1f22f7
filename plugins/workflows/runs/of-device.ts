import type { DeviceWork, DeviceWorkAsked } from '../../pairing/contract.ts'
import type { RunService } from './service.ts'
import { isActive } from './service.ts'

/** Adds the runs that a device began and that have not ended. */
export async function addRuns(service: RunService, asked: DeviceWorkAsked): Promise<DeviceWorkAsked> {
  const found: DeviceWork[] = []
  const turns: string[] = []
  for (const { event, agentId, details } of asked.entries) {
    const id = event === 'workflow_changed' ? /^run (\S+) of workflow ".*" began$/s.exec(details)?.[1] : undefined
    const row = id === undefined ? undefined : await service.row(id)
    if (!row) continue
    turns.push(row.id)
    if (!isActive(row.state)) continue
    found.push({
      kind: 'workflow_run',
      id: row.id,
      name: row.workflow_name,
      agentId,
      statements: service.cancelling(row, asked.reason),
      after: () => service.cancelled(row),
    })
  }
  return { ...asked, found: [...asked.found, ...found], turns: [...asked.turns, ...turns] }
}
