import { definePlugin } from 'svc/sdk'
import { McpServerChanged, McpServers } from './contract.ts'
import { Servers, Settings } from './config.ts'

export default definePlugin({
  name: 'mcp',
  version: '1.0.0',
  config: Settings,
  sections: { mcp_servers: Servers },
  outbound: 'both',
  hooks: [McpServerChanged],
  provides: { servers: McpServers },
  setup() {
    const missing = (): Promise<never> => Promise.reject(new Error('not there yet'))
    return {
      servers: {
        list: () => Promise.resolve([]),
        find: () => Promise.resolve(undefined),
        add: missing,
        update: missing,
        remove: missing,
        reconnect: missing,
        test: missing,
        client: missing,
      },
    }
  },
})
