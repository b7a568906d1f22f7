import type * as v from 'valibot'
import { HookReceived } from '../contract.ts'
import { readAgentName } from './agent-name.ts'
import type { AdmittedRequest } from './gate.ts'
import type { InboundDeps } from './routes.ts'
import type { Wake, WakeResult } from './schema.ts'

/** Stores a wake, and hands it to the agent at once unless it may wait for the next heartbeat. */
export async function takeWake(
  { wakes, hooks, background }: InboundDeps,
  admitted: AdmittedRequest,
  body: v.InferOutput<typeof Wake>,
): Promise<v.InferOutput<typeof WakeResult>> {
  const { text, mode } = body
  const id = admitted.effectId
  const handler = await wakes()
  const outcome = await handler.receive(admitted, { agent: readAgentName(body), mode, text })
  if (outcome === 'duplicate') return { status: 'accepted', mode, id, duplicate: true }
  background(async () => {
    await hooks.emit(HookReceived, { id, mode, text })
    if (mode === 'now') await handler.flush(false)
  })
  return { status: 'accepted', mode, id }
}
