import { hash } from 'node:crypto'
import { watch } from 'node:fs'
import type { FSWatcher } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { canonicalJson, stableId } from 'svc/internal'
import { Refusal, SerialQueue } from 'svc/sdk'
import type { Logger, Statement } from 'svc/sdk'
import { readSteps } from '../definitions/read-steps.ts'
import type { NewWorkflow } from '../definitions/schema.ts'
import type { WorkflowDefinitions } from '../definitions/service.ts'
import { contentOf } from '../definitions/view.ts'
import { convertWorkflows } from '../import/convert.ts'
import { parseText } from '../import/parse-text.ts'

export const FOLDER = 'workflows'
const FILE = /^[\p{L}\p{N}_][\p{L}\p{N}_. -]{0,120}\.toml$/u
/** Milliseconds without a further change after which a change counts as complete. */
const SETTLE_MS = 60

export interface FilesDeps {
  readonly home: string
  readonly maxFileBytes: number
  readonly totalTimeoutSecs: number
  readonly definitions: WorkflowDefinitions
  readonly log: Logger
}
/** A file of the folder: what became of it. */
export interface FileState {
  readonly file: string
  readonly workflowId: string
  /** Why its present text is not in force. */
  readonly problem: string | undefined
}

/** Keeps the workflows of `<home>/workflows` as its files are. One that is wrong leaves the last good one in force. */
export class WorkflowFiles implements Disposable {
  readonly #deps: FilesDeps
  readonly #folder: string
  readonly #syncs = new SerialQueue()
  #states: readonly FileState[] = []
  #watchers: FSWatcher[] = []
  #timer: NodeJS.Timeout | undefined
  #closed = false
  constructor(deps: FilesDeps) {
    this.#deps = deps
    this.#folder = join(deps.home, FOLDER)
  }

  get states(): readonly FileState[] {
    return this.#states
  }

  /** Reads the folder and follows its changes. */
  async start(): Promise<void> {
    // A folder that is made, moved or replaced later shows in the home.
    this.#watch(this.#deps.home, (name) => name === null || name === FOLDER)
    await this.sync()
  }
  [Symbol.dispose](): void {
    this.#closed = true
    clearTimeout(this.#timer)
    for (const watcher of this.#watchers) watcher.close()
    this.#watchers = []
  }

  /** Settles when workflows are as the files are now. */
  sync(): Promise<void> {
    return this.#syncs.run(async () => {
      if (this.#closed) return
      this.#watchFolder()
      const names = await this.#names()
      const states: FileState[] = []
      for (const file of names) states.push(await this.#apply(file))
      await this.#removeOthers(new Set(names))
      this.#states = states
    })
  }

  #watchFolder(): void {
    const [home, ...others] = this.#watchers
    for (const watcher of others) watcher.close()
    this.#watchers = home ? [home] : []
    this.#watch(this.#folder, (name) => name === null || FILE.test(name))
  }
  #watch(path: string, concerns: (name: string | null) => boolean): void {
    try {
      const watcher = watch(path, { persistent: false }, (_kind, name) => concerns(name) && this.#schedule())
      watcher.on('error', (error) => this.#deps.log.debug(`watching ${path} ended`, error))
      this.#watchers.push(watcher)
    } catch (error) {
      if (!isMissing(error)) throw error
    }
  }
  #schedule(): void {
    clearTimeout(this.#timer)
    if (this.#closed) return
    this.#timer = setTimeout(() => {
      this.sync().catch((error: unknown) => this.#deps.log.error('cannot read the folder of workflows', error))
    }, SETTLE_MS).unref()
  }

  async #names(): Promise<readonly string[]> {
    try {
      return (await readdir(this.#folder)).filter((name) => FILE.test(name)).toSorted()
    } catch (error) {
      if (isMissing(error)) return []
      throw error
    }
  }

  async #apply(file: string): Promise<FileState> {
    const workflowId = stableId('workflow-file', file)
    try {
      await this.#write(file, workflowId, await this.#read(file))
      return { file, workflowId, problem: undefined }
    } catch (error) {
      const problem = explain(error)
      if (this.#states.find((state) => state.file === file)?.problem !== problem)
        this.#deps.log.error(`workflows/${file} is not in force: ${problem}`)
      return { file, workflowId, problem }
    }
  }
  async #read(file: string): Promise<NewWorkflow> {
    const path = join(this.#folder, file)
    const entry = await stat(path)
    if (!entry.isFile()) throw new Refusal('invalid_request', 'it is no file')
    if (entry.size > this.#deps.maxFileBytes)
      throw new Refusal(
        'invalid_request',
        `it has ${entry.size} bytes, more than plugins.workflows.max_file_bytes allows`,
      )
    const [first, second] = convertWorkflows(parseText(await readFile(path, 'utf8'), 'toml'))
    if (!first || second) throw new Refusal('invalid_request', 'a file has one workflow')
    for (const warning of first.warnings) this.#deps.log.warn(`workflows/${file}: ${warning}`)
    return first.body
  }
  /** Whoever changed its file last defines it, so that homes with the same files can be updated one by one. */
  async #write(file: string, id: string, body: NewWorkflow): Promise<void> {
    const { definitions } = this.#deps
    const { claims } = definitions
    const digest = this.#digest(body)
    const claim = claims.claim(file, digest)
    const before = await definitions.find(id)
    if (!before) {
      await this.#create(file, id, body, claim)
      return
    }
    const { own, hasOthers } = await claims.find(file)
    if (digest === digestOf(contentOf(before))) {
      if (own !== digest) await definitions.commit(claim)
      return
    }
    if (hasOthers && (own === undefined || own === digest))
      throw new Refusal(
        'conflict',
        'another daemon on this database has a file of this name with other content: make them equal, or rename one',
      )
    await definitions.replaceFromFile(before, body, [claim])
  }
  async #create(file: string, id: string, body: NewWorkflow, claim: Statement): Promise<void> {
    const { definitions } = this.#deps
    try {
      await definitions.create(body, { id, file, also: [claim] })
    } catch (error) {
      // Another daemon created it at the same moment.
      if (error instanceof Refusal || !(await definitions.find(id))) throw error
      await this.#write(file, id, body)
    }
  }
  #digest(body: NewWorkflow): string {
    const { name = 'unnamed', description = '', total_timeout_secs: total, run_by: runBy = [] } = body
    const totalTimeoutSecs = total ?? this.#deps.totalTimeoutSecs
    return digestOf(contentOf({ name, description, steps: readSteps(body.steps), totalTimeoutSecs, runBy }))
  }

  async #removeOthers(files: ReadonlySet<string>): Promise<void> {
    const { definitions } = this.#deps
    for (const { id, file } of await definitions.list()) {
      if (file === null || files.has(file)) continue
      const { own, hasOthers } = await definitions.claims.find(file)
      const workflow = await definitions.find(id)
      if (hasOthers && own !== undefined) await definitions.commit(definitions.claims.release(file))
      else if (!hasOthers && workflow) await definitions.removeOfFile(workflow)
    }
  }
}

const digestOf = (content: unknown): string => hash('sha256', canonicalJson(content))
const isMissing = (error: unknown): boolean => error instanceof Error && 'code' in error && error.code === 'ENOENT'
function explain(error: unknown): string {
  if (error instanceof Refusal) return error.message.replace(/^text: /, '')
  if (error instanceof Error && 'code' in error) return `it cannot be read (${String(error.code)})`
  throw error
}
