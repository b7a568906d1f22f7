import { isUtf8 } from 'node:buffer'
import * as v from 'valibot'
import { defineTool, Refusal } from 'svc/sdk'
import type { AnyTool, Recovery, ToolCallContext } from 'svc/sdk'
import type { Audit } from '../audit/contract.ts'
import type { ChangeLog } from './changes/change-log.ts'
import type { WorkspaceFiles } from './contract.ts'
import { hasCode } from './disk.ts'

/** A file or its name may hold the words of a web page that was read in another session (security facts 1.2). */
const EXTERNAL = ['ExternalNetwork']
const path = v.pipe(v.string(), v.maxLength(1024), v.description('Relative to the workspace'))

/** The workspace as the tools of an agent name its files. */
export class AgentFiles {
  readonly workspaces: WorkspaceFiles
  readonly changes: () => Promise<ChangeLog>
  readonly #audit: Audit
  constructor(workspaces: WorkspaceFiles, changes: () => Promise<ChangeLog>, audit: Audit) {
    this.workspaces = workspaces
    this.changes = changes
    this.#audit = audit
  }

  /**
   * Models write `./a` and, once they know where they are, the absolute path. Returns an empty text for the workspace
   * itself.
   */
  async nameIn(agentId: string, name: string): Promise<string> {
    const root = this.workspaces.isFolder ? await this.workspaces.root(agentId) : undefined
    const isInside = root !== undefined && (name === root || name.startsWith(`${root}/`))
    const inside = isInside ? name.slice(root.length).replace(/^\//, '') : name === '/' ? '' : name
    const plain = inside.replace(/^(\.\/)+/, '').replace(/\/+$/, '')
    return plain === '.' ? '' : plain
  }
  /** Throws `invalid_request` for the workspace itself. */
  async fileIn(agentId: string, name: string): Promise<string> {
    const file = await this.nameIn(agentId, name)
    if (file === '') throw new Refusal('invalid_request', 'path: names the workspace itself; name a file in it')
    return file
  }
  /** Throws `invalid_request` for a file that is no text. */
  async readText(agentId: string, name: string): Promise<string> {
    const bytes = await this.workspaces.read(agentId, name)
    if (!isUtf8(bytes) || bytes.includes(0))
      throw new Refusal('invalid_request', `"${name}" is not a text file (${bytes.byteLength} bytes)`)
    return new TextDecoder().decode(bytes)
  }
  recordChange(agentId: string, details: string): Promise<void> {
    return this.#audit.write({ event: 'file_access', agentId, details })
  }
  async recover(call: ToolCallContext): Promise<Recovery> {
    const { recoverChange } = await import('./changes/change-log.ts')
    return recoverChange(await this.changes(), (details) => this.recordChange(call.agentId, details), call)
  }
}

export function fileTools(
  workspaces: WorkspaceFiles,
  changes: () => Promise<ChangeLog>,
  audit: Audit,
): readonly AnyTool[] {
  const files = new AgentFiles(workspaces, changes, audit)
  return [readTool(files), writeTool(files), listTool(files), createTool(files), patchTool(files), searchTool(files)]
}

function readTool(files: AgentFiles): AnyTool {
  return defineTool({
    name: 'file_read',
    risk: 'read',
    labels: EXTERNAL,
    description: 'Read a text file of the workspace.',
    input: v.object({ path }),
    async run(input, { agentId }) {
      return files.readText(agentId, await files.fileIn(agentId, input.path))
    },
  })
}

function writeTool(files: AgentFiles): AnyTool {
  return defineTool({
    name: 'file_write',
    risk: 'write',
    description: 'Write a text file of the workspace, replacing its content. Missing folders are created.',
    input: v.object({ path, content: v.string() }),
    assess: () => ({ intent: 'write a file of its workspace' }),
    async run(input, call) {
      const { agentId } = call
      const name = await files.fileIn(agentId, input.path)
      await (await files.changes()).intend(call, [{ path: name, after: input.content }])
      const { created } = await files.workspaces.write(agentId, name, input.content)
      const bytes = Buffer.byteLength(input.content)
      await files.recordChange(agentId, `${created ? 'created' : 'replaced'} "${name}" (${bytes} bytes)`)
      return `${created ? 'Created' : 'Replaced'} "${name}".`
    },
    recover: (_, call) => files.recover(call),
  })
}

function listTool(files: AgentFiles): AnyTool {
  return defineTool({
    name: 'file_list',
    risk: 'read',
    labels: EXTERNAL,
    description:
      'List a folder of the workspace; "." is the workspace itself. Answers JSON; a file that cannot be read has ' +
      'a `problem`.',
    input: v.object({ path }),
    async run(input, { agentId }) {
      const name = await files.nameIn(agentId, input.path)
      const { listEntries } = await import('./entries.ts')
      return listEntries(files.workspaces, agentId, name, input.path)
    },
  })
}

function createTool(files: AgentFiles): AnyTool {
  return defineTool({
    name: 'create_directory',
    risk: 'write',
    description: 'Make a folder in the workspace, with those above it.',
    input: v.object({ path }),
    async run(input, { agentId }) {
      const name = await files.fileIn(agentId, input.path)
      await files.workspaces.check(agentId, name)
      if (!files.workspaces.isFolder) return `"${name}" is made with the first file in it.`
      const made = await files.workspaces
        .within(agentId, name, (_, isNew) => Promise.resolve(isNew), { make: true })
        .catch((error: unknown) => {
          if (hasCode(error, 'EEXIST', 'ENOTDIR'))
            throw new Refusal('conflict', `"${name}" or a part of it is a file`, { cause: error })
          throw error
        })
      if (made) await files.recordChange(agentId, `created folder "${name}"`)
      return made ? `Created folder "${name}".` : `"${name}" is there already.`
    },
    recover: () => Promise.resolve({ outcome: 'repeat' }),
  })
}

function patchTool(files: AgentFiles): AnyTool {
  return defineTool({
    name: 'apply_patch',
    risk: 'write',
    description:
      'Change several files of the workspace at once, all or none. The patch is "*** Begin Patch", then for each ' +
      'file ' +
      '"*** Update File: <path>" with hunks ("@@" and lines that begin with a space, - or +), "*** Add File: ' +
      '<path>" with ' +
      'lines that begin with +, or "*** Delete File: <path>", and at last "*** End Patch". A unified diff is ' +
      'taken too.',
    input: v.object({ patch: v.pipe(v.string(), v.minLength(1), v.maxLength(1_048_576)) }),
    assess: () => ({ intent: 'change files of its workspace' }),
    async run(input, call) {
      const { applyPatch } = await import('./file-changes.ts')
      const done = await applyPatch(files, call, input.patch)
      await files.recordChange(call.agentId, `patch: ${done}`)
      return `Done: ${done}.`
    },
    recover: (_, call) => files.recover(call),
  })
}

function searchTool(files: AgentFiles): AnyTool {
  return defineTool({
    name: 'code_search',
    risk: 'read',
    labels: EXTERNAL,
    description: 'Find lines in the text files of the workspace that contain a literal text. Answers path:line: text.',
    input: v.object({
      query: v.pipe(v.string(), v.minLength(1), v.maxLength(1024)),
      path: v.optional(v.pipe(path, v.description('A folder or a file; the whole workspace when absent')), '.'),
      case_sensitive: v.optional(v.boolean(), false),
      max_results: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1000)), 100),
    }),
    async run(input, { agentId, signal }) {
      const query = {
        query: input.query,
        caseSensitive: input.case_sensitive,
        maxResults: input.max_results,
        name: await files.nameIn(agentId, input.path),
      }
      const { search } = await import('./search.ts')
      return search(files.workspaces, agentId, query, signal)
    },
  })
}
