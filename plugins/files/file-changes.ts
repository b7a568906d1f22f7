import { Refusal } from 'svc/sdk'
import type { ToolCallContext } from 'svc/sdk'
import { applyHunks, parsePatch } from './patch.ts'
import type { FileChange } from './changes/change-log.ts'
import type { Edit } from './patch.ts'
import type { AgentFiles } from './agent-files.ts'

/** Applies all of a patch or nothing. Returns what was done, such as `changed "a", deleted "b"`. */
export async function applyPatch(files: AgentFiles, call: ToolCallContext, patch: string): Promise<string> {
  const changes = new FileChanges(files, call.agentId)
  for (const edit of parsePatch(patch)) await changes.add(edit)
  await (await files.changes()).intend(call, changes.list())
  await changes.apply()
  return changes.summary()
}

/** The edits of one patch, collected before the first file is written. */
class FileChanges {
  readonly #files: AgentFiles
  readonly #agentId: string
  /** What each file holds before and after the patch; `undefined` for a file that does not exist. */
  readonly #before = new Map<string, string | undefined>()
  readonly #after = new Map<string, string | undefined>()
  constructor(files: AgentFiles, agentId: string) {
    this.#files = files
    this.#agentId = agentId
  }

  /** Throws `conflict` and `file_not_found` for an edit that does not fit. */
  async add(edit: Edit): Promise<void> {
    const name = await this.#files.fileIn(this.#agentId, edit.path)
    const content = await this.#current(name)
    if (edit.kind === 'add') {
      if (content !== undefined) throw new Refusal('conflict', `"${name}" is there already; use Update File`)
      this.#after.set(name, edit.content)
      return
    }
    if (content === undefined) throw new Refusal('file_not_found', `No file "${name}"`)
    if (edit.kind === 'delete') this.#after.set(name, undefined)
    else await this.#update(name, content, edit)
  }

  async #update(name: string, content: string, { moveTo, hunks }: Extract<Edit, { kind: 'update' }>): Promise<void> {
    const target = moveTo === undefined ? name : await this.#files.fileIn(this.#agentId, moveTo)
    if (target !== name) {
      if ((await this.#current(target)) !== undefined) throw new Refusal('conflict', `"${target}" is there already`)
      this.#after.set(name, undefined)
    }
    this.#after.set(target, applyHunks(name, content, hunks))
  }

  list(): readonly FileChange[] {
    return [...this.#after].map(([path, after]) => ({ path, after }))
  }
  /** Writes all files. When one fails, restores those already written. */
  async apply(): Promise<void> {
    const written: string[] = []
    try {
      for (const [name, content] of this.#after) {
        await this.#put(name, content)
        written.push(name)
      }
    } catch (error) {
      for (const name of written) await this.#put(name, this.#before.get(name))
      throw error
    }
  }

  /** Such as `changed "a", deleted "b"`. */
  summary(): string {
    return [...this.#after]
      .map(([name, content]) => {
        if (content === undefined) return `deleted "${name}"`
        return `${this.#before.get(name) === undefined ? 'added' : 'changed'} "${name}"`
      })
      .join(', ')
  }

  async #current(name: string): Promise<string | undefined> {
    if (this.#after.has(name)) return this.#after.get(name)
    const content = await this.#files.readText(this.#agentId, name).catch((error: unknown) => {
      if (error instanceof Refusal && error.code === 'file_not_found') return undefined
      throw error
    })
    this.#before.set(name, content)
    return content
  }
  async #put(name: string, content: string | undefined): Promise<void> {
    const { workspaces } = this.#files
    if (content === undefined) await workspaces.remove(this.#agentId, name)
    else await workspaces.write(this.#agentId, name, content)
  }
}
