import { findNearest, suggest } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Agents } from '../../agents/contract.ts'
import type { MatchRule } from './match-rule.ts'
import type { HandlerDeps } from '../http/handlers.ts'

interface AddInput {
  readonly body: { readonly agent: string; readonly match_rule: MatchRule }
  readonly effectId?: string | undefined
}

/** What the routes of bindings do. */
export function bindingHandlers({ messaging, agents }: Pick<HandlerDeps, 'messaging' | 'agents'>) {
  const { bindings } = messaging
  return {
    async listBindings() {
      const all = await bindings.list()
      return { bindings: all.map(({ agent, match_rule }) => ({ agent, match_rule })) }
    },
    async addBinding({ body, effectId }: AddInput) {
      await requireAgent(agents, body.agent)
      await bindings.add(body.agent, body.match_rule, effectId)
      return { status: 'created' as const }
    },
    async removeBinding({ params }: { readonly params: { readonly index: number } }) {
      await bindings.remove(params.index)
      return { status: 'removed' as const }
    },
  }
}

/** Throws `agent_not_found`, or `invalid_request` for a field, with the nearest name. */
export async function requireAgent(
  agents: Pick<Agents, 'find' | 'findByName' | 'list'>,
  given: string,
  field?: string,
): Promise<void> {
  if ((await agents.findByName(given)) ?? (await findById(agents, given))) return
  const names = (await agents.list()).map(({ name }) => name)
  const problem = `There is no agent "${given}"${suggest(findNearest(given, names))}`
  throw field === undefined
    ? new Refusal('agent_not_found', problem)
    : new Refusal('invalid_request', `${field}: ${problem}`)
}

function findById(agents: Pick<Agents, 'find'>, id: string) {
  return /^[0-9a-f-]{36}$/i.test(id) ? agents.find(id) : Promise.resolve(undefined)
}
