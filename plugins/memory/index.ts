import { Configuration } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import { Agents } from '../agents/contract.ts'
import { Audit } from '../audit/contract.ts'
import { Inference } from '../providers/contract.ts'
import { Queue } from '../queue/contract.ts'
import { Screening } from '../screening/contract.ts'
import { Sessions } from '../sessions/contract.ts'
import { Usage } from '../usage/contract.ts'
import { Settings } from './config.ts'
import { Memories, MemoryChanged } from './contract.ts'
import { agentOf, EMBED_LANE, lazyMemories, REMOVAL_LANE, SWEEP_LANE, WORDS_LANE } from './lazy.ts'
import { migrations } from './migrations.ts'
import { memoryRoutes } from './routes/routes.ts'
import { addProactive } from './composition.ts'
import { followRemovedAgents } from './removal/hooks.ts'
import { memoryTools } from './tools.ts'

const MINUTE_MS = 60_000

export default definePlugin({
  name: 'memory',
  version: '2.0.0',
  config: Settings,
  requires: { agents: Agents, audit: Audit, configuration: Configuration, queue: Queue },
  optional: { inference: Inference, sessions: Sessions, screening: Screening, usage: Usage },
  provides: { memories: Memories },
  hooks: [MemoryChanged],
  migrations,
  pages: [
    {
      path: 'memory',
      title: 'Memory',
      group: 'Agents',
      file: 'pages/memory.html',
      assets: ['memory.css', 'memory.js'],
    },
  ],
  setup(ctx) {
    const { config, db, hooks, jobs, own, routes, services, tools } = ctx
    const { queue } = services
    const memories = lazyMemories({ ...ctx, ...services, inference: () => ctx.optional('inference') })
    tools.add(...memoryTools(memories))
    const embedder = queue.work(EMBED_LANE, {
      run: async ({ payload, signal }) => (await memories()).embedder.run(agentOf(payload), signal),
    })
    own('vectors', embedder)
    const indexer = queue.work(WORDS_LANE, {
      run: async ({ signal }) => (await memories()).wordIndex.fill(signal),
    })
    own('words', indexer)
    const sweeper = queue.work(SWEEP_LANE, {
      async run() {
        const { removal, upkeep, embedder, uses, wordIndex } = await memories()
        await uses.flush()
        await removal.finish()
        await upkeep.sweep()
        await embedder.sweep()
        await wordIndex.sweep()
        return { outcome: 'done' }
      },
    })
    own('sweeper', sweeper)
    // The id of a job is there once: of all daemons on the database one sweeps.
    const everyMs = config.sweep_minutes * MINUTE_MS
    jobs.every('sweep', everyMs, async () => {
      await db.batch([queue.add({ lane: SWEEP_LANE, id: `${Math.floor(Date.now() / everyMs)}`, payload: null })])
    })
    const remover = queue.work(REMOVAL_LANE, {
      async run({ payload, signal }) {
        await (await memories()).removal.run(agentOf(payload), signal)
        return { outcome: 'done' }
      },
    })
    own('removals', remover)
    followRemovedAgents({ db, hooks, memories })
    const service = async () => (await memories()).memories
    const served: Memories = {
      add: async (list) => (await service()).add(list),
      update: async (...args) => (await service()).update(...args),
      forget: async (...args) => (await service()).forget(...args),
      find: async (...args) => (await service()).find(...args),
      list: async (filter) => (await service()).list(filter),
      search: async (query) => (await service()).search(query),
      similar: async (...args) => (await service()).similar(...args),
    }
    const report = addProactive({
      ...ctx,
      memories: served,
      inference: () => ctx.optional('inference'),
      sessions: () => ctx.optional('sessions'),
      screening: () => ctx.optional('screening'),
      usage: () => ctx.optional('usage'),
    })
    routes.add(...memoryRoutes(memories, report, services))
    return { memories: served }
  },
})
