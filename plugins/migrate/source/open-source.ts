import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { messageOf } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { SourceHome, SourceType } from '../model.ts'
import { isOpenClaw, readOpenClaw } from '../readers/openclaw.ts'
import { productOf, readOpenFang } from '../readers/openfang.ts'
import { Scratch } from './database.ts'
import type { ReadLimits } from './limits.ts'
import { SourceFolder } from './source-folder.ts'

export interface SourceDeps {
  readonly limits: ReadLimits
  /** Folders that no source may have to do with: those of this daemon. */
  readonly denied: readonly string[]
  /** Where copies of databases are made. */
  readonly scratchDir: string
  /** Of the request that names the folder, for messages. */
  readonly field?: 'path' | 'source'
}
/** A home that was read. Its sessions can be read until it is disposed. */
export interface OpenedSource extends AsyncDisposable {
  readonly home: SourceHome
  readonly folder: SourceFolder
}

/**
 * Reads a home of another system. Throws `invalid_request` for a folder that is none, and what `SourceFolder.open`
 * throws. Nothing in the folder is changed or run.
 */
export async function openSource(
  path: string,
  type: SourceType | undefined,
  { limits, denied, scratchDir, field = 'path' }: SourceDeps,
): Promise<OpenedSource> {
  const stack = new AsyncDisposableStack()
  try {
    const folder = stack.use(await SourceFolder.open(path, denied, limits, field))
    const scratch = stack.use(new Scratch(join(scratchDir, `migrate-${randomUUID()}`)))
    const found = (await productOf(folder)) ?? ((await isOpenClaw(folder)) ? ('openclaw' as const) : undefined)
    const deps = { folder, scratch, limits }
    if (found === undefined)
      throw new Refusal('invalid_request', `${field}: ${path} is no home of OpenClaw, OpenFang or LibreFang`)
    const chosen = type ?? found
    const home = chosen === 'openclaw' ? await readOpenClaw(deps) : await readOpenFang(deps, chosen)
    const left = folder.problems.map(({ name, reason }) => ({ kind: kindOf(name), name, reason }))
    const owned = stack.move()
    return {
      folder,
      home: { ...home, left: [...home.left, ...left] },
      [Symbol.asyncDispose]: () => owned.disposeAsync(),
    }
  } catch (error) {
    await stack.disposeAsync()
    if (isDamage(error))
      throw new Refusal('invalid_request', `${field}: a database of ${path} is damaged: ${messageOf(error)}`, {
        cause: error,
      })
    throw error
  }
}

/** What SQLite throws in the middle of a table. */
export const isDamage = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' && error.code.startsWith('SQLITE_')

/** What a file is about, by its name. */
export function kindOf(name: string): SourceHome['left'][number]['kind'] {
  if (/(^|\/)sessions(\/|$)|\.jsonl$/.test(name)) return 'session'
  if (/(^|\/)memory(\/|$)|MEMORY\.md$/.test(name)) return 'memory'
  if (name.startsWith('skills/')) return 'skill'
  if (name.startsWith('agents/')) return 'agent'
  return /^workspaces?(\/|-)/.test(name) ? 'workspace' : 'config'
}
