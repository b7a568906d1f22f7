import { createHash } from 'node:crypto'
import * as v from 'valibot'
import { idempotencyKey, Refusal } from 'svc/sdk'
import type { PluginDatabase, ToolCallContext } from 'svc/sdk'
import type { Workspaces } from './contract.ts'

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

const DAY_MS = 86_400_000
/** A call that was cut off is decided about at the next start. */
const KEEP_DAYS = 30
const MISSING = 'missing'
/** Too large, or not permitted: it cannot be compared. */
const UNREADABLE = 'unreadable'
const Row = v.object({ path: v.string(), before_hash: v.string(), after_hash: v.string() })

/** Records what each call is about to do to files, so that a crash leaves no doubt whether it did. */
export class ChangeLog {
  readonly #db: PluginDatabase
  readonly #workspaces: Pick<Workspaces, 'read'>
  constructor(db: PluginDatabase, workspaces: Pick<Workspaces, 'read'>) {
    this.#db = db
    this.#workspaces = workspaces
  }

  /**
   * Durable before the first file is written. Throws `conflict` when the call is made again after a crash and somebody
   * else has changed a file since.
   */
  async intend(call: Call, changes: readonly FileChange[]): Promise<void> {
    const key = idempotencyKey(call)
    const rows = await this.#rows(key)
    if (rows.length > 0) {
      const { other } = await this.#compare(call.agentId, rows)
      if (other.length > 0)
        throw new Refusal('conflict', `${quote(other)} changed since this call was made first; read it again`)
      return
    }
    const at = new Date().toISOString()
    const statements = changes.map(
      async ({ path, after }) =>
        this.#db.sql`INSERT INTO files_change (call_key, path, agent_id, before_hash, after_hash, created_at)
          VALUES (${key}, ${path}, ${call.agentId}, ${await this.#hashNow(call.agentId, path)}, ${hashOf(after)},
          ${at})`,
    )
    await this.#db.batch(await Promise.all(statements))
  }
  /** `undefined`: the call had not begun to change anything. */
  async state(call: Call): Promise<ChangeState | undefined> {
    const rows = await this.#rows(idempotencyKey(call))
    return rows.length === 0 ? undefined : this.#compare(call.agentId, rows)
  }
  async prune(now = Date.now()): Promise<void> {
    const before = new Date(now - KEEP_DAYS * DAY_MS).toISOString()
    await this.#db.run`DELETE FROM files_change WHERE created_at < ${before}`
  }
  async clear(agentId: string): Promise<void> {
    await this.#db.run`DELETE FROM files_change WHERE agent_id = ${agentId}`
  }

  async #rows(key: string): Promise<readonly v.InferOutput<typeof Row>[]> {
    return v.parse(
      v.array(Row),
      await this.#db.all`SELECT path, before_hash, after_hash FROM files_change WHERE call_key = ${key} ORDER BY path`,
    )
  }
  async #compare(agentId: string, rows: readonly v.InferOutput<typeof Row>[]): Promise<ChangeState> {
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

/** File names for a person or a model. */
export function quote(paths: readonly string[]): string {
  return paths.map((path) => `"${path}"`).join(', ')
}

function hashOf(content: Content): string {
  return content === undefined ? MISSING : createHash('sha256').update(content).digest('hex')
}
