import { wallClock } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import { AgentKilling, Agents, Family } from '../agents/contract.ts'
import { Audit, AuditFeed } from '../audit/contract.ts'
import { ChannelMessages } from '../channels/contract.ts'
import { Chat, Turns } from '../chat/contract.ts'
import { AgentMessages, AgentMessageSending } from '../delegation/contract.ts'
import { Tasks } from '../tasks/contract.ts'
import { Settings } from './config.ts'
import { migrations } from './migrations.ts'
import { commsRoutes } from './routes.ts'
import type { Comms } from './service.ts'

const HOUR_MS = 3_600_000

export default definePlugin({
  name: 'comms',
  version: '1.0.0',
  config: Settings,
  requires: {
    agents: Agents,
    family: Family,
    audit: Audit,
    feed: AuditFeed,
    chat: Chat,
    turns: Turns,
    messages: AgentMessages,
  },
  optional: { channels: ChannelMessages, tasks: Tasks },
  migrations,
  pages: [
    {
      path: 'comms',
      title: 'Comms',
      group: 'Agents',
      file: 'pages/comms.html',
      assets: ['comms.css', 'comms.js', 'topology.js'],
    },
  ],
  setup({ config, db, hooks, jobs, log, metrics, optional, routes, services }) {
    const sent = metrics.counter(
      'svc_comms_messages_total',
      'Messages between agents, and those sent by /api/comms/send.',
    )
    const open = async (): Promise<Comms> => {
      const { Comms } = await import('./service.ts')
      return new Comms({
        ...services,
        db,
        log,
        channels: () => optional('channels'),
        settings: config,
        clock: wallClock,
        counted: () => sent.add(1),
      })
    }
    let opened: Promise<Comms> | undefined
    const comms = (): Promise<Comms> => (opened ??= open())
    routes.add(...commsRoutes({ comms, turns: services.turns, tasks: () => optional('tasks') }))
    hooks.on(AgentMessageSending, async ({ message, statements }) => ({
      message,
      statements: [...statements, (await comms()).record(message)],
    }))
    hooks.on(AgentKilling, async ({ agent, statements }) => {
      const { forgetTexts } = await import('./store.ts')
      return { agent, statements: [...statements, forgetTexts(db, agent.id)] }
    })
    jobs.every('retention', HOUR_MS, async () => (await comms()).events.deleteOld())
    return {}
  },
})
