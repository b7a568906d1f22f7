import { definePlugin } from 'svc/sdk'
import { AgentKilled, Agents } from '../agents/contract.ts'
import { Audit } from '../audit/contract.ts'
import { migrations } from './migrations.ts'
import { Limits } from './schema.ts'
import { NoteService } from './service.ts'
import { NoteStore } from './store.ts'
import { noteTools } from './tools.ts'

export default definePlugin({
  name: 'memory',
  version: '1.0.0',
  config: Limits,
  requires: { agents: Agents, audit: Audit },
  migrations,
  async setup({ config, db, hooks, services, tools }) {
    const notes = new NoteService(new NoteStore(db), services.agents, services.audit, config)
    await notes.sweep()
    hooks.on(AgentKilled, ({ agent }) => notes.clear(agent.id))
    tools.add(...noteTools(notes))
    return {}
  },
})
