import { describe, expect, it } from 'vitest'
import type { Agent } from '../../../plugins/agents/contract.ts'
import { InboundStore } from '../../../plugins/webhooks/inbound/store.ts'
import { WakeHandler } from '../../../plugins/webhooks/inbound/wake-handler.ts'
import { migrations } from '../../../plugins/webhooks/migrations.ts'
import { open, recorder } from '../../core/storage/engines.ts'

describe('WakeHandler', () => {
  it('stores a wake once when both deliveries of its request look for the agent at the same time', async () => {
    const { database } = await open('sqlite')
    await database.migrate('webhooks', migrations)
    const store = new InboundStore(database.sql, recorder().log)
    const lookups: string[] = []
    const entries: string[] = []
    const lookup = Promise.withResolvers<Agent>()
    const wakes = new WakeHandler({
      store,
      audit: {
        entry: ({ details }) => {
          entries.push(details)
          return database.sql.sql`DELETE FROM webhooks_seen WHERE id = ''`
        },
      },
      agents: {
        list: async () => [],
        resolve: (name) => {
          lookups.push(name)
          return lookup.promise
        },
      },
      chat: { accept: () => Promise.reject(new Error('unexpected')) },
      turns: { find: async () => undefined },
      log: { warn: () => undefined },
    })
    const wake = { agent: 'assistant', mode: 'now', text: 'the build is red' } as const
    const first = wakes.receive({ effectId: 'wake-1' }, wake)
    const second = wakes.receive({ effectId: 'wake-1' }, wake)
    await expect.poll(() => lookups.length).toBeGreaterThan(0)
    lookup.resolve({} as Agent)
    expect(await Promise.all([first, second])).toEqual(['accepted', 'duplicate'])
    expect(entries).toHaveLength(1)
    expect(await store.waiting(10)).toHaveLength(1)
  })
})
