import { randomUUID } from 'node:crypto'
import { mkdir, readdir, rm } from 'node:fs/promises'
import { isAbsolute, join } from 'node:path'
import { messageOf, readVariable, replaceConfined } from 'svc/internal'
import type { Configuration, DatabaseSnapshots } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Counter, Hooks, Logger, PluginDatabase, Statement } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import type { Audit } from '../audit/contract.ts'
import type { Workspaces } from '../files/contract.ts'
import type { KeyValue } from '../kv/contract.ts'
import type { Memories } from '../memory/contract.ts'
import type { ProviderKeys } from '../providers/contract.ts'
import type { Sessions } from '../sessions/contract.ts'
import type { Skills } from '../skills/contract.ts'
import type { Settings } from './config.ts'
import { MigrationEnded } from './contract.ts'
import { candidates, detect, refuseUnsupported } from './detect.ts'
import { importAgents } from './import/agents.ts'
import { importAutomation, importChannels } from './import/automation.ts'
import type { AutomationDeps } from './import/automation.ts'
import { importKeys } from './import/keys.ts'
import { importMemories } from './import/memories.ts'
import { Run } from './import/run.ts'
import type { Wanted } from './import/run.ts'
import { importSessions } from './import/sessions.ts'
import { importSkills } from './import/skills.ts'
import { importValues } from './import/values.ts'
import { SOURCE_TYPES } from './kinds.ts'
import type { SourceHome, SourceType } from './model.ts'
import { renderReport, toJson } from './report.ts'
import type { Report } from './report.ts'
import { kindOf, openSource } from './source/open-source.ts'
import type { OpenedSource } from './source/open-source.ts'
import { ItemStore } from './store.ts'

export interface OptionalDeps extends AutomationDeps {
  readonly kv: KeyValue | undefined
  readonly memories: Memories | undefined
  readonly providerKeys: ProviderKeys | undefined
  readonly skills: Skills | undefined
  readonly workspaces: Workspaces | undefined
}
export interface MigrateDeps {
  readonly agents: Agents
  readonly audit: Audit
  readonly configuration: Configuration
  readonly sessions: Sessions
  readonly snapshots: DatabaseSnapshots
  readonly db: PluginDatabase
  readonly hooks: Pick<Hooks, 'emit'>
  readonly log: Logger
  readonly settings: Settings
  readonly items: Counter
  readonly optional: <K extends keyof OptionalDeps>(name: K) => OptionalDeps[K]
  /** Variables of the daemon; tests have their own. */
  readonly variable?: (name: string) => string | undefined
  readonly home?: string
}
export interface Outcome {
  readonly report: Report
  readonly markdown: string
  /** Files of the report; none of a dry run. */
  readonly files: readonly string[]
}
export type RunState = 'idle' | 'running' | 'completed' | 'failed'
interface Current {
  readonly state: RunState
  readonly run: Run
  readonly endedAt: string | undefined
  readonly error: string | undefined
  readonly files: readonly string[]
}

/** Reads homes of other systems, and makes here what they hold; one run at a time. */
export class Migrations {
  readonly #deps: MigrateDeps
  readonly #store: ItemStore
  readonly #expected = new Map<string, (agentId: string) => Statement>()
  #current: Current | undefined
  #busy = false
  constructor(deps: MigrateDeps) {
    this.#deps = deps
    this.#store = new ItemStore(deps.db)
  }

  /** What the last run does or did; `undefined` since the daemon started. */
  get current(): Current | undefined {
    return this.#current
  }
  /** For the batch that makes an agent of a run. */
  statementsOf({ id, name }: { readonly id: string; readonly name: string }): readonly Statement[] {
    const row = this.#expected.get(name)
    return row ? [row(id)] : []
  }

  detect(): Promise<readonly SourceHome[]> {
    const variable = this.#deps.variable ?? readVariable
    const names = ['OPENCLAW_STATE_DIR', 'OPENFANG_HOME', 'LIBREFANG_HOME', 'APPDATA', 'LOCALAPPDATA']
    const env = Object.fromEntries(names.map((name) => [name, variable(name)]))
    return detect(candidates(env, this.#deps.home), (path, type) => this.#open(path, type))
  }
  /** Throws `invalid_request` and `forbidden`, as `openSource` does. */
  async scan(path: string): Promise<SourceHome> {
    await using source = await this.#open(path, undefined)
    return source.home
  }

  /**
   * Makes what a home holds and is not here yet. Throws `invalid_request` for a source that is none, and `conflict`
   * while another run works. When it throws later, the same run again goes on where it ended.
   */
  async migrate(source: string, wanted: Wanted, isDryRun: boolean): Promise<Outcome> {
    refuseUnsupported(source)
    if (this.#busy) throw new Refusal('conflict', 'Another migration is under way: GET /api/migrate/status')
    this.#busy = true
    try {
      const { path, type } = await this.#resolve(source)
      await using opened = await this.#open(path, type, 'source')
      return await this.#run(opened, wanted, isDryRun)
    } finally {
      this.#busy = false
    }
  }

  /** A path, or the first home that is found of a system. */
  async #resolve(source: string): Promise<{ readonly path: string; readonly type: SourceType | undefined }> {
    if (isAbsolute(source)) return { path: source, type: undefined }
    const type = SOURCE_TYPES.find((name) => name === source.toLowerCase())
    if (type === undefined)
      throw new Refusal('invalid_request', `source: must be an absolute path, or one of ${SOURCE_TYPES.join(', ')}`)
    const home = (await this.detect()).find((found) => found.type === type)
    if (!home)
      throw new Refusal(
        'invalid_request',
        `source: no home of ${type} is found for the user of the daemon: name its path`,
      )
    return { path: home.path, type }
  }
  #open(path: string, type: SourceType | undefined, field: 'path' | 'source' = 'path'): Promise<OpenedSource> {
    const { settings, snapshots } = this.#deps
    return openSource(path, type, {
      field,
      denied: [snapshots.homeDir, snapshots.dataDir],
      scratchDir: snapshots.dataDir,
      limits: {
        maxEntries: settings.max_entries,
        maxFileBytes: settings.max_file_bytes,
        maxDatabaseBytes: settings.max_database_bytes,
        maxSessions: settings.max_sessions,
        maxMemories: settings.max_memories,
        maxMessages: settings.max_messages,
        foreignOwner: settings.foreign_owner,
      },
    })
  }

  async #run({ home, folder }: OpenedSource, wanted: Wanted, isDryRun: boolean): Promise<Outcome> {
    const { audit, log } = this.#deps
    const startedAt = new Date().toISOString()
    const run = new Run({ id: randomUUID(), home, wanted, isDryRun, startedAt }, this.#store)
    this.#current = { state: 'running', run, endedAt: undefined, error: undefined, files: [] }
    if (!isDryRun)
      await audit.write({ event: 'data_migrated', details: `migration ${run.id} from ${home.path} begins` })
    let failure: unknown
    const told = folder.problems.length
    try {
      await this.#import(run, folder)
    } catch (error) {
      failure = error
    }
    for (const { name, reason } of folder.problems.slice(told))
      if (!run.left.some((left) => left.name === name)) run.leave(kindOf(name), name, reason)
    const error = failure === undefined ? undefined : messageOf(failure)
    const report = run.report(new Date().toISOString(), error)
    const markdown = renderReport(report)
    let files: readonly string[] = []
    try {
      if (!isDryRun) files = await this.#keepReport(report, markdown)
      if (!isDryRun) await this.#tell(run, report)
    } catch (problem) {
      // A run that failed says why itself.
      if (failure === undefined) failure = problem
      else log.error('the report of the migration was not kept', problem)
    }
    const state = failure === undefined ? 'completed' : 'failed'
    this.#current = {
      state,
      run,
      endedAt: report.endedAt,
      error: failure === undefined ? undefined : messageOf(failure),
      files,
    }
    if (failure !== undefined) throw failure
    return { report, markdown, files }
  }

  async #import(run: Run, folder: OpenedSource['folder']): Promise<void> {
    const { agents, db, sessions, settings, snapshots, optional } = this.#deps
    const { wanted } = run
    const expect = (name: string, row: (agentId: string) => Statement): Disposable => {
      this.#expected.set(name, row)
      return { [Symbol.dispose]: () => void this.#expected.delete(name) }
    }
    const workspaces = optional('workspaces')
    await importAgents(run, { agents, workspaces, folder, maxFiles: settings.max_workspace_files, expect })
    if (wanted.agents) {
      await importValues(run, optional('kv'))
      await importMemories(run, optional('memories'))
    }
    if (wanted.skills) await importSkills(run, { skills: optional('skills'), folder, scratchDir: snapshots.dataDir })
    if (wanted.sessions) await importSessions(run, { sessions, db })
    const automation = {
      channels: optional('channels'),
      cronJobs: optional('cronJobs'),
      triggers: optional('triggers'),
      workflows: optional('workflows'),
    }
    if (wanted.channels) await importChannels(run, automation)
    if (wanted.automation) await importAutomation(run, automation)
    if (wanted.keys) await importKeys(run, optional('providerKeys'))
    await this.#importSettings(run)
  }
  /** What nobody set here. */
  async #importSettings(run: Run): Promise<void> {
    const { configuration } = this.#deps
    if (!run.wanted.agents) return
    for (const { key, value } of run.home.settings)
      await run.attempt('config', key, async () => {
        if ((await run.before('config', key, key)) !== undefined) return
        const isSame = configuration.shown(key) === value
        const isSet = configuration.sources().has(key)
        if (isSet && !isSame) return run.leave('config', key, `it is set here; there it is ${value}`)
        await configuration.check(key, value)
        if (!run.isDryRun) {
          if (!isSet) await configuration.set(key, value)
          await run.keep('config', key, key, String(value))
        }
        run.made('config', key, String(value))
      })
  }

  async #tell(run: Run, { imported, left, error }: Report): Promise<void> {
    const { audit, hooks, items } = this.#deps
    for (const { kind } of imported) items.add(1, { kind, outcome: 'imported' })
    for (const { kind } of left) items.add(1, { kind, outcome: 'left' })
    const state = error === undefined ? ('completed' as const) : ('failed' as const)
    await audit.write({
      event: 'data_migrated',
      details: `migration ${run.id} from ${run.home.path} ${state}: ${imported.length} came over, ${left.length} stay behind`,
    })
    const { type } = run.home
    await hooks.emit(MigrationEnded, { runId: run.id, type, state, imported: imported.length, left: left.length })
  }
  /** `<home>/migrations/<time>-<type>.md` and `.json`. */
  async #keepReport(report: Report, markdown: string): Promise<readonly string[]> {
    const { homeDir } = this.#deps.snapshots
    const folder = join(homeDir, 'migrations')
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const stem = `${report.startedAt.replaceAll(/[:.]/g, '-')}-${report.type}`
    await replaceConfined(folder, `${stem}.md`, markdown)
    await replaceConfined(folder, `${stem}.json`, `${JSON.stringify(toJson(report), undefined, 2)}\n`)
    const stems = [
      ...new Set(
        (await readdir(folder)).filter((name) => /\.(md|json)$/.test(name)).map((name) => name.replace(/\.\w+$/, '')),
      ),
    ]
    for (const old of stems.toSorted().slice(0, -this.#deps.settings.max_reports))
      for (const ending of ['md', 'json']) await rm(join(folder, `${old}.${ending}`), { force: true })
    return [join(folder, `${stem}.md`), join(folder, `${stem}.json`)]
  }
}
