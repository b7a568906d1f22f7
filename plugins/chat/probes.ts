import type { Tools } from 'svc/sdk'
import type { Probe } from '../security/contract.ts'

/** The security systems that live in a turn. Each is imported when it is tried. */
export function chatProbes(tools: Tools, plantedSecret: string): readonly Probe[] {
  return [
    { system: 'loop_guard', run: async () => (await import('./probes/loop-guard.ts')).probe() },
    { system: 'session_repair', run: async () => (await import('./probes/session-repair.ts')).probe() },
    { system: 'taint_tracking', run: async () => (await import('./probes/taint.ts')).probe(tools, plantedSecret) },
  ]
}
