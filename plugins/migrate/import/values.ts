import type { KeyValue } from '../../kv/contract.ts'
import type { Run } from './run.ts'

/** What agents keep under keys. A key that is there stays as it is. */
export async function importValues(run: Run, kv: KeyValue | undefined): Promise<void> {
  const counts = new Map<string, number>()
  for (const { agent: owner, key, value } of run.home.values) {
    const name = `${owner}: ${key}`
    await run.attempt('value', name, async () => {
      const agent = run.agents.get(owner)
      if (!kv) return run.leave('value', name, 'the plugin "kv" is not loaded')
      if (!agent) return run.leave('value', name, `its agent "${owner}" is not here`)
      const itemKey = JSON.stringify([owner, key])
      if ((await run.before('value', itemKey, name)) !== undefined) return
      if (!run.isDryRun) {
        const there = await kv.find(agent.id, key)
        if (there && JSON.stringify(there.value) !== JSON.stringify(value))
          return run.leave('value', name, 'there is another value under this key')
        if (!there) await kv.put(agent.id, key, value)
        await run.keep('value', itemKey, name, key)
      }
      counts.set(agent.name, (counts.get(agent.name) ?? 0) + 1)
    })
  }
  for (const [name, count] of counts) run.made('value', name, count === 1 ? '1 value' : `${count} values`)
}
