import type { KeyValue } from '../../kv/contract.ts'
import type { Run } from './run.ts'

/** What agents keep under keys. A key that is there stays as it is. */
export async function importValues(run: Run, kv: KeyValue | undefined): Promise<void> {
  const counts = new Map<string, { made: number; before: number }>()
  for (const { agent: owner, key, value } of run.home.values) {
    const name = `${owner}: ${key}`
    await run.attempt('value', name, async () => {
      const agent = run.agents.get(owner)
      if (!kv) return run.leave('value', name, 'the plugin "kv" is not loaded')
      if (!agent) return run.leave('value', name, `its agent "${owner}" is not here`)
      const itemKey = JSON.stringify([owner, key])
      const sums = counts.get(agent.name) ?? { made: 0, before: 0 }
      counts.set(agent.name, sums)
      if (await run.wasMade('value', itemKey)) return void sums.before++
      if (!run.isDryRun) {
        const there = await kv.find(agent.id, key)
        if (there && JSON.stringify(there.value) !== JSON.stringify(value))
          return run.leave('value', name, 'there is another value under this key')
        if (!there) await kv.put(agent.id, key, value)
        await run.keep('value', itemKey, name, key)
      }
      sums.made++
    })
  }
  for (const [name, sums] of counts) run.madeMany('value', name, sums)
}
