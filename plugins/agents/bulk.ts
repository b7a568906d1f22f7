import { stableId } from 'svc/internal'
import { parse, Refusal } from 'svc/sdk'
import { AgentParams } from './contract.ts'
import { NewAgent } from './schema.ts'
import type { AgentService } from './service.ts'

/** Makes one agent after the other, so that they are listed in this order. The same `effectId` makes the same ones. */
export async function spawnEach(agents: AgentService, items: readonly unknown[], effectId: string | undefined) {
  const results = []
  for (const [index, item] of items.entries()) {
    const spawn = async () => {
      const request = parse(NewAgent, item, 'agent')
      const id = effectId && stableId('agents', effectId, String(index))
      // It was made by a request whose answer was lost.
      const made = id === undefined ? undefined : await agents.find(id)
      if (made) return { agent_id: made.id, name: made.name }
      const { toml, ...signed } = await agents.open(request)
      const agent = await agents.spawn(toml, { name: request.name, id, ...signed })
      return { agent_id: agent.id, name: agent.name }
    }
    results.push(await attempt({ index }, spawn))
  }
  return summed(results)
}

/** `act` returns what was done. */
export async function doEach(items: readonly unknown[], act: (id: string) => Promise<string>) {
  const apply = (item: unknown) =>
    attempt({ agent_id: typeof item === 'string' ? item.slice(0, 256) : '' }, async () => ({
      message: await act(parse(AgentParams, { id: item }, 'agent_ids').id),
    }))
  return summed(await Promise.all(items.map(apply)))
}

async function attempt<K extends object, R extends object>(
  key: K,
  act: () => Promise<R>,
): Promise<K & { success: boolean; error?: string } & Partial<R>> {
  try {
    return { ...key, success: true, ...(await act()) }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return { ...key, success: false, error: error.message }
  }
}

function summed<R extends { readonly success: boolean }>(
  results: R[],
): { total: number; succeeded: number; failed: number; results: R[] } {
  const succeeded = results.filter(({ success }) => success).length
  return { total: results.length, succeeded, failed: results.length - succeeded, results }
}
