import * as v from 'valibot'
import { definePlugin } from 'svc/sdk'
import { Agents } from '../agents/contract.ts'
import { Audit } from '../audit/contract.ts'
import { Journal } from '../journal/contract.ts'
import { Usage } from '../usage/contract.ts'
import { countTurns } from './counters.ts'
import { activityRoutes } from './routes.ts'

/** What an agent did, collected from the plugins that recorded it. Stores nothing. */
export default definePlugin({
  name: 'activity',
  version: '1.0.0',
  config: v.object({}),
  requires: { agents: Agents, audit: Audit, journal: Journal },
  optional: { usage: Usage },
  setup({ hooks, metrics, optional, routes, services: { agents, audit, journal } }) {
    countTurns(metrics, hooks)
    routes.add(...activityRoutes({ agents, audit, journal, usage: () => optional('usage'), now: Date.now }))
    return {}
  },
})
