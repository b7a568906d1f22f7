import { Refusal } from 'svc/sdk'
import type { Workspaces } from '../files/contract.ts'
import type { Session } from './session.ts'
import type { Download } from './wire.ts'

export interface SaveDeps {
  readonly workspaces: Workspaces
  readonly session: Session
  readonly agentId: string
  readonly signal: AbortSignal
  readonly maxBytes: number
}
const FOLDER = 'downloads'
const READ_MS = 30_000
const MAX_FILES = 1000

/** Puts what a page offered into `downloads/` of the workspace, replacing nothing. A line for each. */
export async function saveDownloads(deps: SaveDeps, downloads: readonly Download[]): Promise<readonly string[]> {
  const lines: string[] = []
  for (const { file, name, state, bytes, why } of downloads) {
    const safe = safeName(name)
    if (state === 'running') lines.push(`Downloading ${safe}; it is in ${FOLDER}/ after one of the next calls.`)
    else if (state === 'failed') lines.push(`Not downloaded: ${safe}: ${safeText(why)}`)
    else lines.push(await save(deps, file, safe, bytes))
  }
  return lines
}

async function save(deps: SaveDeps, file: number, name: string, bytes: number): Promise<string> {
  const { workspaces, agentId } = deps
  const content = await read(deps, file, bytes)
  if (content === undefined) return `Not downloaded: ${name}: it could not be read`
  const taken = await namesIn(workspaces, agentId)
  const dot = name.lastIndexOf('.')
  const [stem, ending] = dot > 0 ? [name.slice(0, dot), name.slice(dot)] : [name, '']
  let path = `${FOLDER}/${name}`
  for (let count = 2; taken.has(path); count++) path = `${FOLDER}/${stem}-${count}${ending}`
  await workspaces.write(agentId, path, content)
  return `Downloaded ${path} (${content.byteLength} bytes).`
}

async function namesIn(workspaces: Workspaces, agentId: string): Promise<ReadonlySet<string>> {
  try {
    return new Set((await workspaces.list(agentId, FOLDER, MAX_FILES)).map((each) => each.name))
  } catch (error) {
    if (error instanceof Refusal && error.code === 'file_not_found') return new Set()
    throw error
  }
}

/** In parts, because a line from the sandbox has a limit. `undefined` when it is not as long as it said. */
async function read({ session, signal, maxBytes }: SaveDeps, file: number, bytes: number): Promise<Buffer | undefined> {
  if (bytes > maxBytes) return undefined
  const parts: Buffer[] = []
  let offset = 0
  for (;;) {
    const { result } = await session.call('file', { file, offset }, READ_MS, signal)
    const part = Buffer.from(result?.value ?? '', 'base64')
    if (!result || offset + part.byteLength > bytes) return undefined
    parts.push(part)
    offset += part.byteLength
    if (offset === bytes && part.byteLength < PART_BYTES) return Buffer.concat(parts)
    if (part.byteLength < PART_BYTES) return undefined
  }
}
/** Of the sandbox: a shorter part is the last one. */
const PART_BYTES = 1_048_576

/** A page chooses the name. */
function safeName(name: string): string {
  const safe = name.replaceAll(/[^\w.-]+/g, '_').replace(/^[._-]+/, '')
  return safe === '' ? 'file' : safe.slice(-100)
}
const safeText = (text: string): string => text.replaceAll(/[^\x20-\x7E]+/g, ' ').slice(0, 200)
