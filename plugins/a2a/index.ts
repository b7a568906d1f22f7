import * as v from 'valibot'
import { definePlugin } from 'svc/sdk'
import { TurnEnded, TurnFailed } from '../chat/contract.ts'
import { addClient, clientMigrations } from './client/index.ts'
import { optional, required, sections } from './context.ts'
import { A2aAgentChanged, A2aSentChanged, A2aTaskChanged } from './contract.ts'
import { addServer, serverMigrations } from './server/index.ts'

export default definePlugin({
  name: 'a2a',
  version: '1.0.0',
  config: v.object({}),
  sections,
  requires: required,
  optional,
  outbound: 'both',
  hooks: [A2aTaskChanged, A2aAgentChanged, A2aSentChanged],
  migrations: [...serverMigrations, ...clientMigrations],
  pages: [
    {
      path: 'agents',
      title: 'A2A agents',
      group: 'Connections',
      file: 'pages/agents.html',
      assets: ['agent-card.js', 'agents.css', 'agents.js'],
    },
  ],
  setup(ctx) {
    const server = addServer(ctx)
    ctx.hooks.on(TurnEnded, ({ entryPoint, result }) => {
      if (entryPoint === 'a2a') server.ended(result.turnId)
    })
    ctx.hooks.on(TurnFailed, ({ entryPoint, turnId }) => {
      if (entryPoint === 'a2a') server.ended(turnId)
    })
    addClient(ctx)
    return {}
  },
})
