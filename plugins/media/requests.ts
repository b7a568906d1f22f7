import { randomUUID } from 'node:crypto'
import { idempotencyKey, omitUndefined } from 'svc/sdk'
import type { ToolCallContext } from 'svc/sdk'
import { findMade } from './calls.ts'
import type { Made, MediaDeps } from './calls.ts'
import type { MadeMedia } from './routes.ts'

/** The only call of its request. */
const CALL = 'request'

/**
 * Has something made for an agent on behalf of whoever asks, as the agent's tools do it: within its budget, into its
 * workspace. It is made to the end also when nobody waits for it any more, because it is paid for.
 */
export async function makeFor(
  { agents }: MediaDeps,
  { agent: wanted, id = randomUUID(), signal }: { agent: string; id: string | undefined; signal: AbortSignal },
  make: (call: ToolCallContext) => Promise<Made>,
): Promise<MadeMedia> {
  const agent = await agents.requireRunning((await agents.resolve(wanted)).id)
  const { id: agentId, name: agentName, sessionId } = agent
  return view(await make({ agentId, agentName, sessionId, turnId: id, callId: CALL, signal }))
}

/** What the request with this id made. Throws `conflict` when it was cut off, so that nobody knows. */
export async function recallMade({ store }: MediaDeps, id: string): Promise<MadeMedia | undefined> {
  const made = await findMade(store, idempotencyKey({ turnId: id, callId: CALL }))
  return made && view(made)
}

const view = ({ text, files, provider, model, costUsd, transcript }: Made): MadeMedia => ({
  message: text,
  files: [...files],
  provider,
  model,
  cost_usd: costUsd,
  ...omitUndefined({ text: transcript }),
})
