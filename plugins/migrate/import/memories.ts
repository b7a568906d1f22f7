import { Refusal } from 'svc/sdk'
import type { Memories, NewMemory } from '../../memory/contract.ts'
import type { SourceMemory } from '../model.ts'
import type { Run } from './run.ts'

/** Of one commit. */
const BATCH = 100

/**
 * What agents remembered, for the owner of the daemon alone. Where it came from there is not known, so it is labelled as
 * from outside, and is nobody's own word.
 */
export async function importMemories(run: Run, memories: Memories | undefined): Promise<void> {
  const counts = new Map<string, { made: number; before: number }>()
  const count = (agent: string, what: 'made' | 'before', by: number): void => {
    const sums = counts.get(agent) ?? { made: 0, before: 0 }
    counts.set(agent, sums)
    sums[what] += by
  }
  let batch: SourceMemory[] = []
  const write = async (): Promise<void> => {
    const given = batch
    batch = []
    if (run.isDryRun || !memories) return
    // One that is refused leaves the others of its commit as they are: they are tried alone.
    const failed = await add(run, memories, given)
    const failedAlone = failed.length > 1 ? [] : [...failed]
    for (const one of failed.length > 1 ? failed : []) failedAlone.push(...(await add(run, memories, [one])))
    for (const { agent } of failedAlone) count(agent, 'made', -1)
  }
  for (const memory of run.home.memories) {
    const agent = run.agents.get(memory.agent)
    if (!memories) run.leave('memory', memory.file, 'the plugin "memory" is not loaded')
    else if (!agent) run.leave('memory', memory.file, `its agent "${memory.agent}" is not here`)
    else if (await run.wasMade('memory', memory.key)) count(memory.agent, 'before', 1)
    else {
      count(memory.agent, 'made', 1)
      batch.push(memory)
    }
    if (batch.length >= BATCH) await write()
  }
  await write()
  for (const [agent, sums] of counts) run.madeMany('memory', run.agents.get(agent)?.name ?? agent, sums)
}

/** Those that were not added; of one alone the reason is told. */
async function add(run: Run, memories: Memories, given: readonly SourceMemory[]): Promise<readonly SourceMemory[]> {
  if (given.length === 0) return []
  try {
    const made = await memories.add(given.map((one) => toMemory(run, one)))
    await run.keepAll(
      given.map((one, at) => ({ kind: 'memory', key: one.key, name: one.file, target: made[at]?.id ?? '' })),
    )
    return []
  } catch (error) {
    if (!(error instanceof Refusal) || error.code === 'service_unavailable') throw error
    if (given.length === 1) run.leave('memory', given[0]?.file ?? '', error.message)
    return given
  }
}

function toMemory(run: Run, { agent, content, confidence, category, file, key }: SourceMemory): NewMemory {
  return {
    agentId: run.agents.get(agent)?.id ?? '',
    content,
    level: 'user',
    category,
    confidence,
    tags: [run.home.type],
    source: { kind: 'import', file, labels: ['ExternalNetwork'] },
    idempotencyKey: run.itemId('memory', key),
  }
}
