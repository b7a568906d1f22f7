import * as v from 'valibot'
import { explain } from './api.ts'
import type { AttachedFile } from './attached.ts'
import { Observable } from './observable.ts'
import { readTab, writeTab } from './tab-storage.ts'

export type DraftFile = { readonly id: number; readonly name: string } & (
  | { readonly state: 'uploading'; readonly progress: number }
  | { readonly state: 'ready'; readonly fileId: string }
  | { readonly state: 'failed'; readonly problem: string }
)
/** A message that is being written. */
export interface Draft {
  readonly text: string
  readonly files: readonly DraftFile[]
}
export type Upload = (file: File, onProgress: (progress: number) => void, signal: AbortSignal) => Promise<AttachedFile>

const Stored = v.record(
  v.string(),
  v.object({ text: v.string(), files: v.array(v.object({ fileId: v.string(), name: v.string() })) }),
)
const EMPTY: Draft = { text: '', files: [] }
/** The daemon takes no more with one message. */
const MAX_FILES = 16

/** The draft for the conversation in view. Each conversation keeps its own, with the tab. */
export class Drafts extends Observable<Draft> {
  readonly #name: string
  readonly #upload: Upload
  readonly #uploads = new Map<number, AbortController>()
  #drafts: ReadonlyMap<string, Draft>
  /** Empty before the conversation is known. */
  #sessionId = ''
  #nextId = 1

  constructor(agentId: string, upload: Upload) {
    super(EMPTY)
    this.#name = `draft.${agentId}`
    this.#upload = upload
    const stored = readTab(this.#name, Stored) ?? {}
    this.#drafts = new Map(
      Object.entries(stored).map(([id, { text, files }]) => [id, { text, files: this.#toDraftFiles(files) }]),
    )
  }

  /** Another conversation is in view. What was written before the first one was known belongs to it. */
  enter(sessionId: string): void {
    if (sessionId === this.#sessionId) return
    const early = this.#sessionId === '' ? this.value : EMPTY
    this.#sessionId = sessionId
    const draft = this.#drafts.get(sessionId) ?? EMPTY
    this.change(() => joined(draft, early))
  }
  change(change: (draft: Draft) => Draft): void {
    this.#change(this.#sessionId, change(this.value))
  }
  setText(text: string): void {
    this.change(({ files }) => ({ text, files }))
  }
  /** In front of what is written already. */
  prepend(text: string, files: readonly AttachedFile[]): void {
    this.change((draft) => joined({ text, files: this.#toDraftFiles(files) }, draft))
  }
  clear(): void {
    this.change(() => EMPTY)
  }

  attach(files: readonly File[]): void {
    for (const file of files) this.#attach(file)
  }
  remove(id: number): void {
    this.#uploads.get(id)?.abort()
    this.change(({ text, files }) => ({ text, files: files.filter((file) => file.id !== id) }))
  }

  #attach(file: File): void {
    const named = { id: this.#nextId++, name: file.name }
    const isTooMany = this.value.files.length >= MAX_FILES
    const added: DraftFile = isTooMany
      ? { ...named, state: 'failed', problem: `At most ${MAX_FILES} files go with one message` }
      : { ...named, state: 'uploading', progress: 0 }
    this.change(({ text, files }) => ({ text, files: [...files, added] }))
    if (isTooMany) return
    const stop = new AbortController()
    this.#uploads.set(named.id, stop)
    this.#upload(file, (progress) => this.#replace({ ...named, state: 'uploading', progress }), stop.signal)
      .then(
        ({ fileId, name }) => this.#replace({ id: named.id, name, state: 'ready', fileId }),
        (error: unknown) => this.#replace({ ...named, state: 'failed', problem: explain(error) }),
      )
      .finally(() => this.#uploads.delete(named.id))
  }
  /** In the draft that has it: another conversation may be in view by now. */
  #replace(file: DraftFile): void {
    for (const [sessionId, draft] of this.#drafts)
      if (draft.files.some(({ id }) => id === file.id))
        this.#change(sessionId, { ...draft, files: draft.files.map((each) => (each.id === file.id ? file : each)) })
  }
  #change(sessionId: string, draft: Draft): void {
    const drafts = new Map(this.#drafts)
    drafts.delete('')
    if (isEmpty(draft)) drafts.delete(sessionId)
    else drafts.set(sessionId, draft)
    this.#drafts = drafts
    writeTab(this.#name, toStored(drafts))
    if (sessionId === this.#sessionId) this.set(draft)
  }
  #toDraftFiles(files: readonly AttachedFile[]): readonly DraftFile[] {
    return files.map(({ fileId, name }) => ({ id: this.#nextId++, name, state: 'ready', fileId }))
  }
}

export function isEmpty({ text, files }: Draft): boolean {
  return text.trim() === '' && files.length === 0
}
/** The files of a draft; `undefined` while one of them is not there. */
export function readyFiles({ files }: Draft): readonly AttachedFile[] | undefined {
  const ready = files.flatMap((file) => (file.state === 'ready' ? [{ fileId: file.fileId, name: file.name }] : []))
  return ready.length === files.length ? ready : undefined
}

function joined(first: Draft, second: Draft): Draft {
  const text = [first.text, second.text].filter((part) => part.trim() !== '').join('\n')
  return { text, files: [...first.files, ...second.files] }
}
function toStored(drafts: ReadonlyMap<string, Draft>): unknown {
  if (drafts.size === 0) return undefined
  return Object.fromEntries(
    Array.from(drafts, ([id, { text, files }]) => [
      id,
      {
        text,
        files: files.flatMap((file) => (file.state === 'ready' ? [{ fileId: file.fileId, name: file.name }] : [])),
      },
    ]),
  )
}
