import { isUtf8 } from 'node:buffer'
import { lstat } from 'node:fs/promises'
import { Refusal } from 'svc/sdk'
import type { Workspaces } from './contract.ts'

export interface Search {
  readonly query: string
  readonly caseSensitive: boolean
  readonly maxResults: number
  /** Of a folder or a file; empty for all. */
  readonly name: string
}

const MAX_FILES = 20_000
const MAX_FILE_BYTES = 1_048_576
const MAX_TOTAL_BYTES = 67_108_864
const MAX_LINE_CHARS = 300
/** Folders of generated files. */
const skipped = /(^|\/)(\.git|node_modules|\.tmp)\//

/** Reads each file once. The query is matched literally, so no query is slow. */
export async function search(
  workspaces: Workspaces,
  agentId: string,
  { query, caseSensitive, maxResults, name }: Search,
  signal: AbortSignal,
): Promise<string> {
  if (query.includes('\n')) throw new Refusal('invalid_request', 'query: a text within one line is needed')
  const needle = caseSensitive ? query : query.toLowerCase()
  const found: string[] = []
  let bytes = 0
  let unread = 0
  for (const file of await filesAt(workspaces, agentId, name)) {
    signal.throwIfAborted()
    if (file.sizeBytes > MAX_FILE_BYTES || bytes + file.sizeBytes > MAX_TOTAL_BYTES) {
      unread++
      continue
    }
    const content = await workspaces.read(agentId, file.name, { maxBytes: MAX_FILE_BYTES }).catch((error: unknown) => {
      if (error instanceof Refusal) return undefined
      throw error
    })
    if (!content || content.includes(0) || !isUtf8(content)) continue
    bytes += content.byteLength
    const text = new TextDecoder().decode(content)
    if (!(caseSensitive ? text : text.toLowerCase()).includes(needle)) continue
    for (const [index, line] of text.split('\n').entries()) {
      if (!(caseSensitive ? line : line.toLowerCase()).includes(needle)) continue
      found.push(`${file.name}:${index + 1}: ${line.trim().slice(0, MAX_LINE_CHARS)}`)
      if (found.length >= maxResults) return `${found.join('\n')}\n[stopped at ${maxResults} results]`
    }
  }
  const note = unread > 0 ? `\n[${unread} large files were not read]` : ''
  return found.length === 0 ? `Nothing contains "${query}".${note}` : found.join('\n') + note
}

async function filesAt(
  workspaces: Workspaces,
  agentId: string,
  name: string,
): Promise<readonly { readonly name: string; readonly sizeBytes: number }[]> {
  if (name !== '' && !workspaces.isFolder) {
    const all = await workspaces.list(agentId, undefined, MAX_FILES)
    const file = all.find((one) => one.name === name)
    if (file) return [file]
  } else if (name !== '') {
    const at = await lstat(await workspaces.resolve(agentId, name)).catch(() => undefined)
    if (at?.isFile()) return [{ name, sizeBytes: at.size }]
  }
  return (await workspaces.list(agentId, name === '' ? undefined : name, MAX_FILES)).filter(
    (file) => !skipped.test(file.name),
  )
}
