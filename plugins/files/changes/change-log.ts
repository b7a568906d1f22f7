import { createHash } from 'node:crypto'
import { idempotencyKey, Refusal } from 'svc/sdk'
import type { Recovery, ToolCallContext } from 'svc/sdk'
import type { Workspaces } from '../contract.ts'
import type { ChangeRow, ChangeStore } from './store.ts'

type Call = Pick<ToolCallContext, 'agentId' | 'turnId' | 'callId'>
type Content = string | Uint8Array | undefined
/** A file that a call changes, and what it holds afterwards; `undefined` for one that is removed. */
export interface FileChange {
  readonly path: string
  readonly after: Content
}
/** Files of a cut-off call by what they hold now. `other`: somebody else changed them since. */
export interface ChangeState {
  readonly before: readonly string[]
  readonly after: readonly string[]
  readonly other: readonly string[]
}

const MISSING = 'missing'
/** Too large, or not permitted: it cannot be compared. */
const UNREADABLE = 'unreadable'

/** Records what each call is about to do to files, so that a crash leaves no doubt whether it did. */
export class ChangeLog {
  readonly #store: ChangeStore
  readonly #workspaces: Pick<Workspaces, 'read'>
  constructor(store: ChangeStore, workspaces: Pick<Workspaces, 'read'>) {
    this.#store = store
    this.#workspaces = workspaces
  }

  /**
   * Durable before the first file is written. Throws `conflict` when the call is made again after a crash and somebody
   * else has changed a file since.
   */
  async intend(call: Call, changes: readonly FileChange[]): Promise<void> {
    const key = idempotencyKey(call)
    const rows = await this.#store.ofCall(key)
    if (rows.length > 0) {
      const { other } = await this.#compare(call.agentId, rows)
      if (other.length > 0)
        throw new Refusal('conflict', `${quote(other)} changed since this call was made first; read it again`)
      return
    }
    const hashes = changes.map(async ({ path, after }) => ({
      path,
      before_hash: await this.#hashNow(call.agentId, path),
      after_hash: hashOf(after),
    }))
    await this.#store.insert({ key, agentId: call.agentId }, await Promise.all(hashes), new Date().toISOString())
  }
  /** `undefined`: the call had not begun to change anything. */
  async state(call: Call): Promise<ChangeState | undefined> {
    const rows = await this.#store.ofCall(idempotencyKey(call))
    return rows.length === 0 ? undefined : this.#compare(call.agentId, rows)
  }
  async #compare(agentId: string, rows: readonly ChangeRow[]): Promise<ChangeState> {
    const state = { before: [] as string[], after: [] as string[], other: [] as string[] }
    for (const { path, before_hash: before, after_hash: after } of rows) {
      const now = await this.#hashNow(agentId, path)
      if (now === after) state.after.push(path)
      else if (now === before && now !== UNREADABLE) state.before.push(path)
      else state.other.push(path)
    }
    return state
  }
  async #hashNow(agentId: string, path: string): Promise<string> {
    try {
      return hashOf(await this.#workspaces.read(agentId, path))
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      return error.code === 'file_not_found' ? MISSING : UNREADABLE
    }
  }
}

/** Compares the files with what the call found and what it was about to leave. */
export async function recoverChange(
  changes: ChangeLog,
  recordChange: (details: string) => Promise<void>,
  call: Call,
): Promise<Recovery> {
  const state = await changes.state(call)
  if (!state) return { outcome: 'repeat' }
  const { before, after, other } = state
  if (before.length + other.length === 0) {
    await recordChange(`changed ${quote(after)} (found so after the service stopped)`)
    return { outcome: 'done', text: `Done: ${quote(after)} holds what this call was to write.` }
  }
  if (after.length + other.length === 0) return { outcome: 'repeat' }
  const parts = [
    ...(after.length > 0 ? [`changed by this call: ${quote(after)}`] : []),
    ...(before.length > 0 ? [`not changed yet: ${quote(before)}`] : []),
    ...(other.length > 0 ? [`changed by somebody else since, or not at all by this call: ${quote(other)}`] : []),
  ]
  return {
    outcome: 'unknown',
    text: `unknown: the service stopped during this call, which was not made again. ${parts.join('; ')}. Read before you write.`,
  }
}

function quote(paths: readonly string[]): string {
  return paths.map((path) => `"${path}"`).join(', ')
}

function hashOf(content: Content): string {
  return content === undefined ? MISSING : createHash('sha256').update(content).digest('hex')
}
