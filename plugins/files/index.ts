import { join } from 'node:path'
import * as v from 'valibot'
import { Daemon, definePlugin } from 'svc/sdk'
import { Agents } from '../agents/contract.ts'
import { Audit } from '../audit/contract.ts'
import { Workspaces } from './contract.ts'
import { WorkspaceService } from './service.ts'

export default definePlugin({
  name: 'files',
  version: '1.0.0',
  config: v.object({
    /** Of one file of a workspace, through a route or a tool. */
    max_file_bytes: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1)), 10_485_760),
  }),
  requires: { agents: Agents, audit: Audit, daemon: Daemon },
  provides: { workspaces: Workspaces },
  setup({ config, services: { agents, daemon } }) {
    return { workspaces: new WorkspaceService({ agents, folder: join(daemon.config().dataDir, 'workspaces'), maxFileBytes: config.max_file_bytes }) }
  },
})
