import { existsSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import * as v from 'valibot'
import { readOwnJson } from 'svc/internal'
import { parse } from 'svc/sdk'

export const Encoding = v.picklist(['br', 'gzip'])
export type Encoding = v.InferOutput<typeof Encoding>

/** What the build wrote about one file. `file` and the encodings are names inside the page's folder. */
export const Asset = v.object({
  path: v.string(),
  file: v.string(),
  type: v.string(),
  etag: v.string(),
  encodings: v.record(Encoding, v.string()),
})
export type Asset = v.InferOutput<typeof Asset>
const AssetList = v.object({ assets: v.array(Asset) })
const listName = 'assets.json'

/** The folder of the built page: beside the built plugin, or in `dist` of the repository of this source. */
export function findPage(moduleUrl: string): string | undefined {
  let folder = dirname(fileURLToPath(moduleUrl))
  for (;;) {
    for (const candidate of [join(folder, 'webchat'), join(folder, 'dist', 'webchat')]) {
      if (existsSync(join(candidate, listName))) return candidate
    }
    const parent = dirname(folder)
    if (parent === folder || existsSync(join(folder, 'package.json'))) return undefined
    folder = parent
  }
}

/**
 * The built page. Files are read on their first request and again after a new build; only files listed by the build
 * exist.
 */
export class Page {
  readonly #folder: () => string | undefined
  #builtMs = 0
  #read: string | undefined
  #assets = new Map<string, Asset>()
  #bytes = new Map<string, Promise<Uint8Array>>()

  constructor(folder: () => string | undefined) {
    this.#folder = folder
  }

  /** `undefined` when the build made no such file, or was never run. */
  async find(path: string): Promise<Asset | undefined> {
    await this.#refresh()
    return this.#assets.get(path)
  }

  bytes(asset: Asset, encoding: Encoding | undefined): Promise<Uint8Array> {
    const name = (encoding && asset.encodings[encoding]) ?? asset.file
    let bytes = this.#bytes.get(name)
    if (!bytes) {
      bytes = readFile(join(this.#read ?? '', name))
      this.#bytes.set(name, bytes)
      bytes.catch(() => this.#bytes.delete(name)) // The caller sees the failure; the next one tries again.
    }
    return bytes
  }

  async #refresh(): Promise<void> {
    const folder = this.#folder()
    const built = folder === undefined ? undefined : await stat(join(folder, listName)).catch(missing)
    if (folder === undefined || built === undefined) {
      this.#assets.clear()
      this.#builtMs = 0
      return
    }
    if (built.mtimeMs === this.#builtMs && folder === this.#read) return
    const { assets } = parse(AssetList, readOwnJson(await readFile(join(folder, listName), 'utf8')), listName)
    this.#assets = new Map(assets.map((asset) => [asset.path, asset]))
    this.#bytes.clear()
    this.#read = folder
    this.#builtMs = built.mtimeMs
  }
}

function missing(error: unknown): undefined {
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
  throw error
}
