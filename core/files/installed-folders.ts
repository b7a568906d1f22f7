import { randomUUID } from 'node:crypto'
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as v from 'valibot'
import { readOwnJson } from '../schema/nesting.ts'
import { hasCode } from './confine.ts'
import type { ArchivedFile } from './read-archive.ts'
import { removeFolder } from './remove.ts'
import { replaceConfined, syncFolder } from './replace.ts'

const STAGED = '.new-'
const REPLACED = '.old-'
/** Says that svc installed what is in the folder, and in which revision. */
const MARKER = '.installed.json'
const Marker = v.object({ revision: v.string() })

/** What takes a placement back, or makes it final. */
export interface Placement {
  undo(): Promise<void>
  finish(): Promise<void>
}

/** Folders of a home that are installed and removed, such as those of skills. Each takes its place in one step. */
export class InstalledFolders {
  readonly #root: string
  #recovered: Promise<void> | undefined
  constructor(root: string) {
    this.#root = root
  }

  /** The revision that svc put there; `undefined` for a folder made by hand, and where there is none. */
  async revision(name: string): Promise<string | undefined> {
    const text = await ifThere(readFile(join(this.#root, name, MARKER), 'utf8'))
    if (text === undefined) return undefined
    const marker = v.safeParse(Marker, readMarker(text))
    return marker.success ? marker.output.revision : undefined
  }
  async names(): Promise<readonly string[]> {
    return (await ifThere(readdir(this.#root))) ?? []
  }

  /** Puts files in the place of a folder; what was there comes back with `undo`. */
  async place(name: string, files: readonly ArchivedFile[], revision: string): Promise<Placement> {
    await mkdir(this.#root, { recursive: true, mode: 0o700 })
    await this.recover()
    const staged = join(this.#root, `${STAGED}${randomUUID()}`)
    try {
      await mkdir(staged, { mode: 0o700 })
      for (const file of files) await replaceConfined(staged, file.name, file.bytes)
      await writeFile(join(staged, MARKER), JSON.stringify({ revision }), { mode: 0o600, flush: true })
      return await this.#swap(name, staged)
    } catch (error) {
      await removeFolder(staged)
      throw error
    }
  }
  /** Takes a folder away; it comes back with `undo`. */
  async remove(name: string): Promise<Placement> {
    await this.recover()
    return await this.#swap(name, undefined)
  }

  async #swap(name: string, staged: string | undefined): Promise<Placement> {
    const target = join(this.#root, name)
    const old = join(this.#root, `${REPLACED}${name}`)
    await removeFolder(old)
    const hadOld = await rename(target, old).then(
      () => true,
      (error: unknown) => {
        if (hasCode(error, 'ENOENT', 'ENOTDIR')) return false
        throw error
      },
    )
    const undo = async (): Promise<void> => {
      if (staged !== undefined) await removeFolder(target)
      if (hadOld) await rename(old, target)
      await syncFolder(this.#root)
    }
    try {
      if (staged !== undefined) await rename(staged, target)
      await syncFolder(this.#root)
    } catch (error) {
      await undo()
      throw error
    }
    return { undo, finish: () => removeFolder(old) }
  }

  /**
   * Ends what a crash cut off: what was replaced comes back, unless what replaced it is in place. Once, and before
   * anything is placed: later such folders are those of a placement that is under way.
   */
  recover(): Promise<void> {
    this.#recovered ??= this.#endCutOff().catch((error: unknown) => {
      this.#recovered = undefined
      throw error
    })
    return this.#recovered
  }
  async #endCutOff(): Promise<void> {
    const names = await this.names()
    for (const each of names) {
      if (each.startsWith(STAGED)) await removeFolder(join(this.#root, each))
      if (!each.startsWith(REPLACED)) continue
      const name = each.slice(REPLACED.length)
      if (names.includes(name)) await removeFolder(join(this.#root, each))
      else await rename(join(this.#root, each), join(this.#root, name))
    }
  }
}

function readMarker(text: string): unknown {
  try {
    return readOwnJson(text)
  } catch {
    return undefined /* it was edited */
  }
}
/** What was read; `undefined` for what is not there. */
function ifThere<T>(reading: Promise<T>): Promise<T | undefined> {
  return reading.catch((error: unknown) => {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return undefined
    throw error
  })
}
