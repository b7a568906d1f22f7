import { isUtf8 } from 'node:buffer'
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import * as v from 'valibot'
import { defineTool, Refusal } from 'svc/sdk'
import type { AnyTool } from 'svc/sdk'
import type { Audit } from '../audit/contract.ts'
import type { Workspaces } from './contract.ts'
import { hasCode } from './disk.ts'
import { search } from './search.ts'

/** Entries of a folder one answer shows. */
const SHOWN = 1000
/** A file or its name may hold the words of a web page that was read in another session (security facts 1.2). */
const EXTERNAL = ['ExternalNetwork']
const path = v.pipe(v.string(), v.maxLength(1024), v.description('Relative to the workspace'))

export function fileTools(workspaces: Workspaces, audit: Audit): readonly AnyTool[] {
  /** Models write `./a` and, after a look at where they are, the whole path. Returns an empty text for the workspace itself. */
  const nameIn = async (agentId: string, name: string): Promise<string> => {
    const root = await workspaces.root(agentId)
    const inside = name === root || name.startsWith(`${root}/`) ? name.slice(root.length) : name === '/' ? '' : name
    const plain = (inside === name ? name : inside.replace(/^\//, '')).replace(/^(\.\/)+/, '').replace(/\/+$/, '')
    return plain === '.' ? '' : plain
  }
  const fileIn = async (agentId: string, name: string): Promise<string> => {
    const file = await nameIn(agentId, name)
    if (file === '') throw new Refusal('invalid_request', 'path: names the workspace itself; a file is needed')
    return file
  }
  const text = async (agentId: string, name: string): Promise<string> => {
    const bytes = await workspaces.read(agentId, name)
    if (!isUtf8(bytes) || bytes.includes(0))
      throw new Refusal('invalid_request', `"${name}" is not a text file (${bytes.byteLength} bytes)`)
    return new TextDecoder().decode(bytes)
  }
  const changed = (agentId: string, details: string): Promise<void> =>
    audit.write({ event: 'file_access', agentId, details })

  const read = defineTool({
    name: 'file_read',
    risk: 'read',
    labels: EXTERNAL,
    description: 'Read a text file of the workspace.',
    input: v.object({ path }),
    async run(input, { agentId }) {
      return text(agentId, await fileIn(agentId, input.path))
    },
  })
  const write = defineTool({
    name: 'file_write',
    risk: 'write',
    description: 'Write a text file of the workspace, replacing what it holds. Missing folders are made.',
    input: v.object({ path, content: v.string() }),
    assess: () => ({ intent: 'write a file of its workspace' }),
    async run(input, { agentId }) {
      const name = await fileIn(agentId, input.path)
      const { created } = await workspaces.write(agentId, name, input.content)
      await changed(
        agentId,
        `${created ? 'created' : 'replaced'} "${name}" (${Buffer.byteLength(input.content)} bytes)`,
      )
      return `${created ? 'Created' : 'Replaced'} "${name}".`
    },
  })
  const list = defineTool({
    name: 'file_list',
    risk: 'read',
    labels: EXTERNAL,
    description: 'List a folder of the workspace; "." is the workspace itself. Answers JSON.',
    input: v.object({ path }),
    async run(input, { agentId }) {
      const name = await nameIn(agentId, input.path)
      const list = async (folder: string): Promise<string> => {
        const found = await readdir(folder, { withFileTypes: true })
        // A link is neither: it may lead anywhere.
        const entries = found
          .filter((entry) => entry.isFile() || entry.isDirectory())
          .sort((a, b) => (a.name < b.name ? -1 : 1))
        return JSON.stringify({
          entries: await Promise.all(
            entries.slice(0, SHOWN).map(async (entry) =>
              entry.isDirectory()
                ? { name: entry.name, type: 'folder' }
                : {
                    name: entry.name,
                    type: 'file',
                    size_bytes: (await lstat(join(folder, entry.name)).catch(() => undefined))?.size ?? null,
                  },
            ),
          ),
          total: entries.length,
        })
      }
      return workspaces.within(agentId, name, list).catch((error: unknown) => {
        if (hasCode(error, 'ENOENT', 'ENOTDIR'))
          throw new Refusal('file_not_found', `No folder "${input.path}"`, { cause: error })
        throw error
      })
    },
  })
  const create = defineTool({
    name: 'create_directory',
    risk: 'write',
    description: 'Make a folder in the workspace, with those above it.',
    input: v.object({ path }),
    async run(input, { agentId }) {
      const name = await fileIn(agentId, input.path)
      const made = await workspaces
        .within(agentId, name, (_, isNew) => Promise.resolve(isNew), { make: true })
        .catch((error: unknown) => {
          if (hasCode(error, 'EEXIST', 'ENOTDIR'))
            throw new Refusal('conflict', `"${name}" or a part of it is a file`, { cause: error })
          throw error
        })
      if (made) await changed(agentId, `created folder "${name}"`)
      return made ? `Created folder "${name}".` : `"${name}" is there already.`
    },
  })
  const patch = defineTool({
    name: 'apply_patch',
    risk: 'write',
    description:
      'Change several files of the workspace at once, all or none. The patch is "*** Begin Patch", then for each file "*** Update File: <path>" with hunks ("@@" and lines that begin with a space, - or +), "*** Add File: <path>" with lines that begin with +, or "*** Delete File: <path>", and at last "*** End Patch". A unified diff is taken too.',
    input: v.object({ patch: v.pipe(v.string(), v.minLength(1), v.maxLength(1_048_576)) }),
    assess: () => ({ intent: 'change files of its workspace' }),
    async run(input, { agentId }) {
      // What each file holds now and what it is to hold; `undefined` for a file that is not there.
      const now = new Map<string, string | undefined>()
      const next = new Map<string, string | undefined>()
      const current = async (name: string): Promise<string | undefined> => {
        if (next.has(name)) return next.get(name)
        const found = await text(agentId, name).catch((error: unknown) => {
          if (error instanceof Refusal && error.code === 'file_not_found') return undefined
          throw error
        })
        now.set(name, found)
        return found
      }
      const { applyHunks, parsePatch } = await import('./patch.ts')
      for (const edit of parsePatch(input.patch)) {
        const name = await fileIn(agentId, edit.path)
        const held = await current(name)
        if (edit.kind === 'add') {
          if (held !== undefined) throw new Refusal('conflict', `"${name}" is there already; use Update File`)
          next.set(name, edit.content)
          continue
        }
        if (held === undefined) throw new Refusal('file_not_found', `No file "${name}"`)
        if (edit.kind === 'delete') next.set(name, undefined)
        else {
          const to = edit.moveTo === undefined ? name : await fileIn(agentId, edit.moveTo)
          if (to !== name) {
            if ((await current(to)) !== undefined) throw new Refusal('conflict', `"${to}" is there already`)
            next.set(name, undefined)
          }
          next.set(to, applyHunks(name, held, edit.hunks))
        }
      }
      await putAll(agentId, now, next)
      const names = [...next].map(
        ([name, content]) =>
          `${content === undefined ? 'deleted' : now.get(name) === undefined ? 'added' : 'changed'} "${name}"`,
      )
      await changed(agentId, `patch: ${names.join(', ')}`)
      return `Done: ${names.join(', ')}.`
    },
  })
  /** A file that cannot be written brings back those that were. */
  async function putAll(
    agentId: string,
    now: ReadonlyMap<string, string | undefined>,
    next: ReadonlyMap<string, string | undefined>,
  ): Promise<void> {
    const done: string[] = []
    const put = (name: string, content: string | undefined) =>
      content === undefined ? workspaces.remove(agentId, name) : workspaces.write(agentId, name, content)
    try {
      for (const [name, content] of next) {
        await put(name, content)
        done.push(name)
      }
    } catch (error) {
      for (const name of done) await put(name, now.get(name))
      throw error
    }
  }

  const find = defineTool({
    name: 'code_search',
    risk: 'read',
    labels: EXTERNAL,
    description:
      'Find lines in the text files of the workspace that hold a text, taken literally. Answers path:line: text.',
    input: v.object({
      query: v.pipe(v.string(), v.minLength(1), v.maxLength(1024)),
      path: v.optional(v.pipe(path, v.description('A folder or a file; the whole workspace when absent')), '.'),
      case_sensitive: v.optional(v.boolean(), false),
      max_results: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1000)), 100),
    }),
    async run(input, { agentId, signal }) {
      return search(
        workspaces,
        agentId,
        {
          query: input.query,
          caseSensitive: input.case_sensitive,
          most: input.max_results,
          name: await nameIn(agentId, input.path),
        },
        signal,
      )
    },
  })
  return [read, write, list, create, patch, find]
}
