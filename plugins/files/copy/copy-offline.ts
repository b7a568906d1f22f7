import { join } from 'node:path'
import * as v from 'valibot'
import type { OfflineDeps } from 'svc/internal'
import { idOf } from '../mount/compare.ts'
import { MountStore } from '../mount/store.ts'
import { Limits } from '../schema.ts'
import { StoredFiles } from '../stored/store.ts'
import type { FileStore } from '../stored/store.ts'
import { compareWorkspace, copyWorkspace } from './copy-workspace.ts'
import type { Difference } from './copy-workspace.ts'
import { FolderPlace } from './folder-place.ts'
import { moveContents } from './move-contents.ts'
import type { Place } from './place.ts'
import { StoredPlace } from './stored-place.ts'

const Options = v.object({
  target: v.picklist(['folder', 'database', 's3']),
  /** Ids of the agents that there are. */
  agents: v.pipe(v.string(), v.parseJson(), v.array(v.string())),
  /** Absolute; instead of the folder of the configuration. */
  path: v.optional(v.string()),
  dry_run: v.boolean(),
  /** What the place has besides, or with another content, goes. */
  replace: v.boolean(),
})
const Home = v.looseObject({ data_dir: v.string() })
/** Names that a message has. */
const MAX_NAMED = 5

export interface CopyReport {
  readonly from: string
  readonly to: string
  /** Why nothing was copied, and what to do about it. */
  readonly problem?: string
  readonly advice?: string
  readonly agents: number
  /** Files that were copied, or that would be. */
  readonly files: number
  readonly bytes: number
  /** Files that were there already. */
  readonly same: number
  /** Files with another content there. */
  readonly other: number
  /** Files that are there only. */
  readonly extra: number
  readonly left_out: readonly { readonly agent: string; readonly name: string; readonly why: string }[]
}

/**
 * Copies the workspaces of all agents from where the configuration has them to another place. No daemon may use them
 * meanwhile. Throws what the disk, the database or the bucket refuses; a further call goes on with what is missing.
 */
export async function copyOffline(deps: OfflineDeps, given: object): Promise<CopyReport> {
  const options = v.parse(Options, given)
  const limits = v.parse(Limits, deps.section)
  const { db } = deps
  if (!db) throw new Error('there is no database')
  const problem = problemOf(options, limits, db.dialect)
  if (problem) return { from: limits.mount, to: options.target, ...NOTHING, ...problem }
  const rows = new StoredFiles(db)
  const files = await openFiles(deps, limits, options.target, rows)
  const minObjectBytes = options.target === 's3' ? limits.s3?.min_object_bytes : undefined
  if (limits.mount !== 'folder' && options.target !== 'folder')
    return {
      from: LABELS[limits.mount],
      to: LABELS[options.target],
      ...NOTHING,
      ...(await moveContents({ ...options, rows, files, minObjectBytes })),
    }
  const folder = (path: string | undefined): Place =>
    new FolderPlace(path ?? join(v.parse(Home, deps.config).data_dir, 'workspaces'))
  const stored = (mount: 'database' | 's3'): Place => new StoredPlace(LABELS[mount], rows, files)
  const from = limits.mount === 'folder' ? folder(limits.path) : stored(limits.mount)
  const to = options.target === 'folder' ? folder(options.path ?? limits.path) : stored(options.target)
  const shared = options.target === 'folder' ? (options.path ?? limits.path) : undefined
  if (shared === undefined || options.dry_run) return await copyAll(from, to, options)
  const { checkSharedFolder } = await import('../mount/shared-folder.ts')
  await checkSharedFolder(shared, join(shared, '.mount'), new MountStore(db))
  const report = await copyAll(from, to, options)
  if (report.problem === undefined) await idOf(shared)
  return report
}

async function copyAll(from: Place, to: Place, options: v.InferOutput<typeof Options>): Promise<CopyReport> {
  const there = new Set(await from.ids())
  const differences: Difference[] = []
  for (const id of options.agents) if (there.has(id)) differences.push(await compareWorkspace(from, to, id))
  const sum = (count: (one: Difference) => number): number => differences.reduce((total, one) => total + count(one), 0)
  const report = {
    from: from.label,
    to: to.label,
    agents: differences.length,
    files: sum(({ missing, other }) => missing.length + other.length),
    bytes: sum(({ bytes }) => bytes),
    same: sum(({ same }) => same),
    other: sum(({ isNew, other }) => (isNew ? 0 : other.length)),
    extra: sum(({ isNew, extra }) => (isNew ? 0 : extra.length)),
    left_out: differences.flatMap(({ agentId: agent, leftOut }) => leftOut.map((one) => ({ agent, ...one }))),
  }
  if (options.dry_run) return report
  const conflicts = differences.flatMap(({ agentId, isNew, other, extra }) =>
    isNew ? [] : [...other, ...extra].map((name) => `${agentId}/${name}`),
  )
  if (conflicts.length > 0 && !options.replace) return { ...report, ...problemWith(conflicts, to.label) }
  const leftOut = []
  for (const difference of differences)
    for (const one of await copyWorkspace(from, to, difference)) leftOut.push({ agent: difference.agentId, ...one })
  return { ...report, files: report.files + report.left_out.length - leftOut.length, left_out: leftOut }
}

const LABELS = { folder: 'the folder', database: 'the database', s3: 'the bucket' }
const NOTHING = { agents: 0, files: 0, bytes: 0, same: 0, other: 0, extra: 0, left_out: [] }

interface Problem {
  readonly problem: string
  readonly advice: string
}
function problemOf(
  { target, path }: v.InferOutput<typeof Options>,
  limits: Limits,
  dialect: 'sqlite' | 'postgresql',
): Problem | undefined {
  if (path !== undefined && (target !== 'folder' || dialect === 'sqlite'))
    return {
      problem: 'a path is for a folder that daemons on a PostgreSQL database share',
      advice: 'nothing was copied; leave --path out',
    }
  if (target === 's3' && !limits.s3)
    return {
      problem: 'there is no bucket in the configuration',
      advice: 'nothing was copied; set [plugins.files.s3] first, and leave mount as it is',
    }
  if (target === 'folder' && limits.mount === 'folder' && (path === undefined || path === limits.path))
    return {
      problem: 'the files lie in this folder already',
      advice: 'nothing was copied; name another one with --path',
    }
  return undefined
}
function problemWith(conflicts: readonly string[], label: string): Problem {
  const named = conflicts.slice(0, MAX_NAMED).join(', ')
  const more = conflicts.length > MAX_NAMED ? ` and ${conflicts.length - MAX_NAMED} more` : ''
  return {
    problem: `${label} has files that are not as they are here: ${named}${more}`,
    advice: 'nothing was copied; --replace makes them as they are here, and removes what is there only',
  }
}

/** Files of the database, with the bucket where the configuration has one. */
async function openFiles(
  { db, fetch, secret }: OfflineDeps,
  { s3: section }: Limits,
  target: string,
  rows: StoredFiles,
): Promise<FileStore> {
  if (!section || !fetch || !db) return rows
  const { bucketFiles } = await import('../s3/offline.ts')
  return bucketFiles({ section, fetch, secret, db, rows, isTarget: target === 's3' })
}
