import type { Agents, Family } from '../agents/contract.ts'
import type { Topology } from './schema.ts'
import type { CommsStore } from './store.ts'

/** Messages that the edges between peers are made of. */
const MESSAGES = 500

/** The agents there are, who made whom, and who wrote to whom of late. */
export async function readTopology(
  agents: Agents,
  family: Pick<Family, 'parentOf'>,
  store: CommsStore,
): Promise<Topology> {
  const [all, summaries, pairs] = await Promise.all([agents.list(), agents.summaries(), store.pairs(MESSAGES)])
  const known = new Set(all.map(({ id }) => id))
  const edges: Topology['edges'] = []
  for (const agent of all) {
    const parent = family.parentOf(agent)
    if (parent !== undefined && known.has(parent)) edges.push({ from: parent, to: agent.id, kind: 'parent_child' })
  }
  const joined = new Set<string>()
  for (const { source_id: from, target_id: to } of pairs) {
    const key = [from, to].toSorted().join(' ')
    if (!known.has(from) || !known.has(to) || joined.has(key)) continue
    joined.add(key)
    edges.push({ from, to, kind: 'peer' })
  }
  const nodes = summaries.map(({ id, name, state, model_provider: provider, model_name: model }) => ({
    id,
    name,
    state,
    model: `${provider}/${model}`,
  }))
  return { nodes, edges }
}
