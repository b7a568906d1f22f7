import { definePlugin } from 'svc/sdk'
import { Audit } from '../audit/contract.ts'
import { EventsConfig } from './config.ts'
import { eventTools } from './tools.ts'
import { EventPublished } from './contract.ts'

export default definePlugin({
  name: 'events',
  version: '1.0.0',
  config: EventsConfig,
  hooks: [EventPublished],
  requires: { audit: Audit },
  setup({ config, hooks, services, tools }) {
    tools.add(...eventTools({ audit: services.audit, hooks, config, now: () => new Date().toISOString() }))
    return {}
  },
})
