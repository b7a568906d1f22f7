import { join } from 'node:path'
import { Broadcast, Daemon } from 'svc/internal'
import { definePlugin, Refusal } from 'svc/sdk'
import type { Hooks, Logger } from 'svc/sdk'
import { AgentKilled, Agents, AgentSpawned } from '../agents/contract.ts'
import type { Agent } from '../agents/contract.ts'
import { Audit } from '../audit/contract.ts'
import { Cluster } from '../cluster/contract.ts'
import type { ChangeLog } from './changes/change-log.ts'
import { ChangeStore } from './changes/store.ts'
import { Uploads, Workspaces } from './contract.ts'
import type { WorkspaceFiles } from './contract.ts'
import { Folders } from './folders.ts'
import { migrations } from './migrations.ts'
import { fileRoutes } from './routes.ts'
import { bucketKeyRoutes } from './s3/key-routes.ts'
import { Limits } from './schema.ts'
import { WorkspaceService } from './service.ts'
import { SizeLimits } from './size-limits.ts'
import { UploadStore } from './store.ts'
import { fileTools } from './tools.ts'
import { uploadRoutes } from './upload-routes.ts'
import type { UploadService, UploadServiceDeps } from './uploads.ts'

const DAY_MS = 86_400_000
/** A call that was cut off is decided about at the next start. */
const KEEP_DAYS = 30

export default definePlugin({
  name: 'files',
  version: '1.0.0',
  config: Limits,
  requires: { agents: Agents, audit: Audit, broadcast: Broadcast, daemon: Daemon },
  optional: { cluster: Cluster },
  provides: { workspaces: Workspaces, uploads: Uploads },
  migrations,
  outbound: 'both',
  offline: {
    join: async (deps) => (await import('./mount/check-join.ts')).checkJoin(deps),
    copy: async (deps, options) => (await import('./copy/copy-offline.ts')).copyOffline(deps, options),
  },
  async setup(context) {
    const { config, db, jobs, routes, services, spawn, tools } = context
    const { agents, audit, broadcast, daemon } = services
    if (config.path !== undefined && !broadcast.isShared)
      throw new Error(
        'plugins.files.path is for daemons that share a PostgreSQL database: without one, files lie in data_dir, ' +
          'where backups find them',
      )
    const base = broadcast.isShared
      ? await (await import('./mount/last-folder.ts')).workspacesFolder(config, daemon.config())
      : join(daemon.config().dataDir, 'workspaces')
    spawn.checkWorkspace(base)
    const watch = broadcast.isShared
      ? await (await import('./mount/compare.ts')).compareMounts({ ...context, base, daemon })
      : undefined
    // And again when one is used: a link may lead elsewhere by then.
    const check = (folder: string): void => spawn.checkWorkspace(folder)
    const folders = new Folders(base, config.max_identity_bytes, check, watch)
    const sizes = new SizeLimits({
      maxFileBytes: config.max_file_bytes,
      maxUploadBytes: config.max_upload_bytes,
      maxIdentityBytes: config.max_identity_bytes,
    })
    const inFolders = new WorkspaceService({ agents, folders, sizes })
    const openMount = async () => (await import('./stored/mount.ts')).openMount({ ...services, context, base, sizes })
    const mount = config.mount === 'folder' ? undefined : await openMount()
    const stored = mount?.workspaces
    const workspaces: WorkspaceFiles = stored ?? inFolders
    const uploadStore = new UploadStore(db)
    const uploads = openUploads({ agents, audit, store: uploadStore, workspaces, maxBytes: config.max_upload_bytes })
    const store = new ChangeStore(db)
    let loading: Promise<ChangeLog> | undefined
    const changes = (): Promise<ChangeLog> =>
      (loading ??= import('./changes/change-log.ts').then((loaded) => new loaded.ChangeLog(store, workspaces)))
    jobs.every('changes', DAY_MS, () => store.prune(new Date(Date.now() - KEEP_DAYS * DAY_MS).toISOString()))
    if ((await uploadStore.agents()).length > 0) await (await uploads()).sweep()
    followAgents(context, {
      make: (agent) => (stored ? stored.make(agent) : folders.open(agent)),
      async remove(agentId) {
        await uploadStore.clear(agentId)
        await store.clear(agentId)
        await (stored ? stored.removeAll(agentId) : folders.remove(agentId))
      },
    })
    routes.add(
      ...fileRoutes(workspaces, agents, audit, config.max_file_bytes),
      ...uploadRoutes(uploads, config.max_upload_bytes),
      ...bucketKeyRoutes(async () => {
        const { KeyChanges } = await import('./s3/change-key.ts')
        return new KeyChanges({ ...context, audit, broadcast, daemon, changed: () => mount?.keyChanged() })
      }),
    )
    tools.add(...fileTools(workspaces, changes, audit))
    return { workspaces, uploads: lazyUploads(uploads) }
  },
})

function openUploads(deps: UploadServiceDeps): () => Promise<UploadService> {
  let opened: UploadService | undefined
  return async () => (opened ??= new (await import('./uploads.ts')).UploadService(deps))
}
const lazyUploads = (open: () => Promise<UploadService>): Uploads => ({
  find: async (fileId) => (await open()).find(fileId),
  read: async (upload) => (await open()).read(upload),
})

/** Other folders are made when they are first used. A clone has the files of the agent as it is now. */
function followAgents(
  { hooks, log }: { readonly hooks: Hooks; readonly log: Logger },
  files: { readonly make: (agent: Agent) => Promise<unknown>; readonly remove: (agentId: string) => Promise<void> },
): void {
  hooks.on(AgentSpawned, async ({ agent }) => {
    if (agent.clonedFrom === undefined) return
    try {
      await files.make(agent)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      // Created with the first file.
      log.warn(`the workspace of agent "${agent.name}" could not be created: ${error.message}`)
    }
  })
  hooks.on(AgentKilled, ({ agent }) => files.remove(agent.id))
}
