import { createHash } from 'node:crypto'
import { checkFileName } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Place } from './place.ts'

const NONE = new Uint8Array()

/** A file that is not copied. */
export interface LeftOut {
  readonly name: string
  readonly why: string
}
/** What a workspace in one place lacks of that in another, and what else it has. */
export interface Difference {
  readonly agentId: string
  /** The place has no whole workspace of the agent: whatever is there is the beginning of a copy. */
  readonly isNew: boolean
  readonly missing: readonly string[]
  /** Files with another content. */
  readonly other: readonly string[]
  /** Files that the source has not. */
  readonly extra: readonly string[]
  /** How many are there already. */
  readonly same: number
  /** Of the files that are missing or have another content. */
  readonly bytes: number
  readonly leftOut: readonly LeftOut[]
}

/** Reads the contents of what both have, one file at a time. */
export async function compareWorkspace(from: Place, to: Place, agentId: string): Promise<Difference> {
  const theirs = new Map((await to.files(agentId)).map((file) => [file.name, file]))
  const [missing, other, leftOut]: [string[], string[], LeftOut[]] = [[], [], []]
  let [same, bytes] = [0, 0]
  for (const { name, sizeBytes, problem } of await from.files(agentId)) {
    const there = theirs.get(name)
    theirs.delete(name)
    const why = problem ?? problemOfName(name)
    if (why !== undefined) {
      leftOut.push({ name, why })
      continue
    }
    const isSame =
      there?.sizeBytes === sizeBytes &&
      hashOf((await readable(from, agentId, name, leftOut)) ?? NONE) === (await digest(to, agentId, name))
    if (isSame) same++
    if (isSame || leftOut.at(-1)?.name === name) continue
    ;(there ? other : missing).push(name)
    bytes += sizeBytes
  }
  const isNew = !(await to.isWhole(agentId))
  return { agentId, isNew, missing, other, extra: [...theirs.keys()], same, bytes, leftOut }
}

/**
 * Makes the workspace in one place what it is in the other, and reads each file that it writes again. Returns what it
 * could not read. Throws when what was written is not what was read.
 */
export async function copyWorkspace(from: Place, to: Place, difference: Difference): Promise<readonly LeftOut[]> {
  const { agentId, missing, other, extra, leftOut } = difference
  const unread = [...leftOut]
  for (const name of [...missing, ...other]) {
    const content = await readable(from, agentId, name, unread)
    if (!content) continue
    await to.put(agentId, name, content)
    if ((await digest(to, agentId, name)) !== hashOf(content))
      throw new Error(`"${name}" of agent ${agentId} in ${to.label} is not what was written a moment ago`)
  }
  for (const name of extra) await to.remove(agentId, name)
  await to.finish(agentId)
  return unread
}

/** What the disk or a program of the agent did to one file does not keep the others from being copied. */
async function readable(
  from: Place,
  agentId: string,
  name: string,
  leftOut: LeftOut[],
): Promise<Uint8Array | undefined> {
  try {
    return await from.read(agentId, name)
  } catch (error) {
    if (!(error instanceof Refusal) || (error.code !== 'forbidden' && error.code !== 'file_not_found')) throw error
    leftOut.push({ name, why: error.message })
    return undefined
  }
}
const digest = async (place: Place, agentId: string, name: string): Promise<string> =>
  hashOf(await place.read(agentId, name))
const hashOf = (content: Uint8Array): string => createHash('sha256').update(content).digest('hex')

function problemOfName(name: string): string | undefined {
  try {
    checkFileName(name)
    return undefined
  } catch (error) {
    if (error instanceof Refusal) return error.message
    throw error
  }
}
