import { join } from 'node:path'
import { homeId } from 'svc/internal'
import type { Broadcast, Daemon } from 'svc/internal'
import type { PluginContext } from 'svc/sdk'
import type { Agents } from '../../agents/contract.ts'
import type { Audit } from '../../audit/contract.ts'
import type { Cluster } from '../../cluster/contract.ts'
import type { Limits } from '../schema.ts'
import type { SizeLimits } from '../size-limits.ts'
import { openStored } from './open.ts'
import { StoredFiles } from './store.ts'
import type { StoredWorkspaces } from './workspaces.ts'

type ContextParts = Pick<
  PluginContext<Limits, {}, {}>,
  'config' | 'db' | 'fetch' | 'jobs' | 'log' | 'metrics' | 'operator' | 'own' | 'run' | 'signal' | 'vault'
>
export interface OpenMountDeps {
  readonly context: ContextParts & { readonly optional: (service: 'cluster') => Cluster | undefined }
  readonly agents: Agents
  readonly audit: Audit
  readonly broadcast: Broadcast
  readonly daemon: Daemon
  /** The folder where workspaces were before. */
  readonly base: string
  readonly sizes: SizeLimits
}

const HOUR_MS = 3_600_000

export interface OpenedMount {
  readonly workspaces: StoredWorkspaces
  /** The access key of the bucket was stored or removed by this daemon. */
  readonly keyChanged: () => void
}

/** Workspaces where `plugins.files.mount` says, when that is no folder. */
export async function openMount(deps: OpenMountDeps): Promise<OpenedMount> {
  const { context, agents, audit, broadcast, daemon, base, sizes } = deps
  const { config, db, fetch, jobs, log, metrics, operator, own, run, signal, vault } = context
  const { mount, s3: section } = config
  const rows = new StoredFiles(db)
  const copies = {
    // Of this machine, unlike `plugins.files.path`.
    base: join(daemon.config().dataDir, 'workspaces'),
    maxBytes: config.max_copy_bytes,
    maxFiles: config.max_copy_files,
  }
  const parts = { agents, base, copies, log, mount, rows, sizes }
  jobs.every('orphans', config.sweep_hours * HOUR_MS, async () => {
    const isChosen = async (): Promise<boolean> => {
      const cluster = context.optional('cluster')
      const [oldest] = (await cluster?.members()) ?? []
      return oldest === undefined || oldest.id === cluster?.self
    }
    await (await import('./orphans.ts')).sweepOrphans({ agents, audit, rows, log, isChosen })
  })
  if (!section) {
    if (mount === 's3') throw new Error('plugins.files.mount = "s3" needs a bucket: set [plugins.files.s3]')
    return { workspaces: await openStored({ ...parts, files: rows }), keyChanged: () => undefined }
  }
  const { openBucket } = await import('../s3/open.ts')
  const { files, keyChanged } = openBucket({
    section,
    isMount: mount === 's3',
    rows,
    broadcast,
    daemon,
    home: homeId(daemon.config()),
    db,
    fetch: operator?.fetch ?? fetch,
    jobs,
    log,
    own,
    requests: metrics.counter('svc_files_s3_requests_total', 'Requests to the bucket of files, by what came of them.'),
    run,
    signal,
    vault,
  })
  return { workspaces: await openStored({ ...parts, files }), keyChanged }
}
