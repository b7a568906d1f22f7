import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import * as v from 'valibot'
import { SerialQueue } from 'svc/sdk'
import type { Vault } from 'svc/sdk'
import type { Writers } from './writers/writers.ts'

const Anchor = v.object({
  count: v.pipe(v.number(), v.integer(), v.minValue(0)),
  tip_hash: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/)),
  hmac: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/)),
})
/** How far the chain was known to reach. */
export interface Tip {
  readonly count: number
  readonly hash: string
}
/**
 * `unset`: there never was one. `missing`: there was one, and the file is missing. `keyless`: there is one, and its
 * signing key is missing.
 */
export type AnchorState =
  | { readonly kind: 'unset' | 'missing' | 'keyless' | 'forged' }
  | { readonly kind: 'known'; readonly tip: Tip }

/** The name of the anchor file in the home. */
export const ANCHOR_FILE = 'audit.anchor'
const KEY_NAME = 'anchor-key'

/**
 * The end of the chain, kept outside the database. Cutting entries off the end, or rewriting the whole chain, would
 * need a change to this file too, and signing it needs the key in the vault.
 */
export class AnchorFile {
  readonly #file: string
  readonly #vault: Pick<Vault, 'read' | 'write'>
  /** The key and the file change one after the other: who reads between them would take the anchor for damaged. */
  readonly #queue = new SerialQueue()
  readonly #draft: string
  /** Is there when the operator accepts the end of the chain as it is (`cli/reset-anchor.ts`). */
  readonly #replaced: string
  readonly #writers: Pick<Writers, 'makeKey' | 'hasWritten'> | undefined
  /** `writers`: the other daemons on the database, which have the same key and an anchor each. */
  constructor(file: string, vault: Pick<Vault, 'read' | 'write'>, writers?: Pick<Writers, 'makeKey' | 'hasWritten'>) {
    this.#file = file
    this.#draft = `${file}.new`
    this.#replaced = `${file}.replaced`
    this.#vault = vault
    this.#writers = writers
  }

  read(): Promise<AnchorState> {
    return this.#queue.run(() => this.#read())
  }

  async #read(): Promise<AnchorState> {
    const key = await this.#vault.read(KEY_NAME)
    // The very first anchor whose write was cut off after its key: the draft was complete before.
    const text = this.#text(this.#file) ?? (key === undefined ? undefined : this.#text(this.#draft))
    if (text === undefined) {
      // A daemon that joins others finds their key, and has no anchor yet.
      const isNew =
        key === undefined ||
        existsSync(this.#replaced) ||
        (this.#writers !== undefined && !(await this.#writers.hasWritten()))
      return { kind: isNew ? 'unset' : 'missing' }
    }
    // The key is a row of the same database: somebody who can change entries can remove it too.
    if (key === undefined) return { kind: 'keyless' }
    const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), Anchor), text)
    if (!parsed.success) return { kind: 'forged' }
    const tip = { count: parsed.output.count, hash: parsed.output.tip_hash }
    const genuine = timingSafeEqual(sign(key, tip), Buffer.from(parsed.output.hmac, 'hex'))
    return genuine ? { kind: 'known', tip } : { kind: 'forged' }
  }

  /** How far the anchor reached that the operator has set aside, if it says; `undefined` when there is none. */
  replaced(): { readonly count: number | undefined } | undefined {
    const text = this.#text(this.#replaced)
    if (text === undefined) return undefined
    const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), Anchor), text)
    return { count: parsed.success ? parsed.output.count : undefined }
  }
  /** Once that is recorded. */
  async forgetReplaced(): Promise<void> {
    await rm(this.#replaced, { force: true })
    await this.#syncFolder()
  }

  /** One line, read at every start. */
  #text(file: string): string | undefined {
    try {
      return readFileSync(file, 'utf8')
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
      throw error
    }
  }

  /** Complete on disk before it settles. Creates the key when there is none. */
  write(tip: Tip): Promise<void> {
    return this.#queue.run(() => this.#write(tip))
  }

  async #write(tip: Tip): Promise<void> {
    const known = await this.#vault.read(KEY_NAME)
    const key = known ?? randomBytes(32).toString('hex')
    await mkdir(dirname(this.#file), { recursive: true, mode: 0o700 })
    await this.#writeDraft(tip, key)
    // A new key comes after the draft that it signed and before the file, so that a crash leaves no file or key alone.
    if (known === undefined) {
      await this.#syncFolder()
      if (this.#writers) await this.#writeDraft(tip, await this.#writers.makeKey(this.#vault, KEY_NAME, key))
      else await this.#vault.write(KEY_NAME, key)
    }
    await rename(this.#draft, this.#file)
    await this.#syncFolder()
  }

  async #writeDraft(tip: Tip, key: string): Promise<void> {
    const text = `${JSON.stringify({ count: tip.count, tip_hash: tip.hash, hmac: sign(key, tip).toString('hex') })}\n`
    const handle = await open(this.#draft, 'w', 0o600)
    try {
      await handle.writeFile(text)
      await handle.sync()
    } finally {
      await handle.close()
    }
  }

  async #syncFolder(): Promise<void> {
    const folder = await open(dirname(this.#file), 'r')
    try {
      await folder.sync()
    } finally {
      await folder.close()
    }
  }
}

function sign(key: string, tip: Tip): Buffer {
  return createHmac('sha256', Buffer.from(key, 'hex')).update(`svc-audit-anchor-1:${tip.count}:${tip.hash}`).digest()
}
