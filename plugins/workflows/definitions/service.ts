import { findNearest, suggest } from 'svc/internal'
import { Refusal, SerialQueue } from 'svc/sdk'
import type { Hooks, Logger, PluginDatabase, Statement } from 'svc/sdk'
import { v7 } from 'uuid'
import type { Agents } from '../../agents/contract.ts'
import type { Audit } from '../../audit/contract.ts'
import type { Settings } from '../config.ts'
import { WorkflowChanged } from '../contract.ts'
import type { Definitions, Workflow } from '../definition.ts'
import type { StepTypes } from '../steps/registry.ts'
import { FileClaims } from '../files/store.ts'
import { checkSteps } from './check-steps.ts'
import { checkRunBy, mayRun } from './run-by.ts'
import { readSteps } from './read-steps.ts'
import type { NewWorkflow, StoredItem, WorkflowChange } from './schema.ts'
import { DefinitionStore } from './store.ts'
import { contentOf } from './view.ts'

export interface DefinitionsDeps {
  readonly agents: Agents
  readonly audit: Audit
  readonly config: Settings
  readonly db: PluginDatabase
  readonly hooks: Pick<Hooks, 'emit'>
  readonly log: Logger
  readonly steps: StepTypes
  readonly claims: FileClaims
}
/** Where a workflow comes from other than a request. */
export interface Origin {
  readonly id?: string | undefined
  readonly file?: string | undefined
  /** For the batch that creates it. */
  readonly also?: readonly Statement[]
}

export const openDefinitions = (
  deps: Omit<DefinitionsDeps, 'claims'> & { readonly home: string },
): WorkflowDefinitions => new WorkflowDefinitions({ ...deps, claims: new FileClaims(deps.db, deps.home) })

export class WorkflowDefinitions implements Definitions {
  readonly #deps: DefinitionsDeps
  readonly #store: DefinitionStore
  /** Each change builds on the one before. */
  readonly #changes = new SerialQueue()
  constructor(deps: DefinitionsDeps) {
    this.#deps = deps
    this.#store = new DefinitionStore(deps.db, deps.log)
  }

  get claims(): FileClaims {
    return this.#deps.claims
  }
  /** For a claim alone. */
  commit(...statements: readonly Statement[]): Promise<void> {
    return this.#store.commit(statements)
  }
  find(id: string): Promise<Workflow | undefined> {
    return this.#store.find(id)
  }
  async findByName(name: string): Promise<Workflow | undefined> {
    const [id, other] = await this.#store.findByName(name)
    if (other !== undefined) throw severalNamed(name)
    return id === undefined ? undefined : this.#store.find(id)
  }
  /** As it is, or as it was in one of the revisions that are kept. Throws `workflow_not_found`. */
  async require(id: string, revision?: number): Promise<Workflow> {
    const found = await this.#store.find(id)
    if (!found) throw new Refusal('workflow_not_found', `There is no workflow ${id}`)
    if (revision === undefined) return found
    const then = await this.#store.findRevision(id, revision)
    if (then) return then
    const message = `There is no revision ${revision} of it; plugins.workflows.kept_revisions are kept`
    throw new Refusal('workflow_not_found', message)
  }
  list(): Promise<readonly StoredItem[]> {
    return this.#store.list()
  }
  /** Those that an agent may run. Throws `agent_not_found`. */
  async listFor(agentId: string): Promise<readonly StoredItem[]> {
    const agent = await this.#deps.agents.require(agentId)
    return (await this.#store.list()).filter(({ run_by: runBy }) => mayRun(agent, { runBy }))
  }
  async mayRun(agentId: string, workflow: Pick<Workflow, 'runBy'>): Promise<boolean> {
    return mayRun(await this.#deps.agents.require(agentId), workflow)
  }
  async resolve(idOrName: string): Promise<Workflow> {
    const found = (await this.find(idOrName)) ?? (await this.findByName(idOrName))
    if (found) return found
    const names = (await this.#store.list()).map(({ name }) => name)
    const nearest = suggest(findNearest(idOrName, names))
    throw new Refusal('workflow_not_found', `There is no workflow "${idOrName}"${nearest}`)
  }
  /**
   * One of `listFor`, by id, or by its name when no other has it. Throws `workflow_not_found` with the nearest name, and
   * `conflict`: an agent hears of no workflow that it may not run.
   */
  async resolveFor(agentId: string, idOrName: string): Promise<Workflow> {
    const rows = await this.listFor(agentId)
    const [row, other] = rows.filter(({ id, name }) => id === idOrName || name === idOrName)
    if (other) throw severalNamed(idOrName)
    const found = row && (await this.#store.find(row.id))
    if (found) return found
    const nearest =
      suggest(
        findNearest(
          idOrName,
          rows.map(({ name }) => name),
        ),
      ) || '.'
    throw new Refusal(
      'workflow_not_found',
      `There is no workflow "${idOrName}" that you may run${nearest} workflow_list shows those there are.`,
    )
  }

  /** Throws `invalid_request` that names step and field, and `conflict` when there are too many. */
  async create(body: NewWorkflow, origin: Origin = {}): Promise<Workflow> {
    const steps = readSteps(body.steps)
    await this.check(body)
    return this.#changes.run(async () => {
      const { max_workflows: max, total_timeout_secs: totalTimeoutSecs } = this.#deps.config
      await this.#checkRoom(max)
      const id = origin.id ?? v7()
      const now = new Date().toISOString()
      const workflow: Workflow = {
        id,
        revision: 1,
        name: body.name ?? 'unnamed',
        description: body.description ?? '',
        steps,
        totalTimeoutSecs: body.total_timeout_secs ?? totalTimeoutSecs,
        runBy: body.run_by ?? [],
        file: origin.file,
        createdAt: now,
        updatedAt: now,
      }
      const also = [this.#store.requireRoom(id, max), ...(origin.also ?? [])]
      try {
        await this.#write(workflow, 'created', undefined, also)
      } catch (error) {
        // Another daemon may have taken the last place.
        await this.#checkRoom(max)
        throw error
      }
      return workflow
    })
  }
  async #checkRoom(max: number): Promise<void> {
    if ((await this.#store.count()) >= max)
      throw new Refusal('conflict', `There are ${max} workflows already, which is plugins.workflows.max_workflows`)
  }
  /** Throws as `create`, without storing anything. `coming` are names of agents that will be there by then. */
  async check(body: NewWorkflow, coming?: ReadonlySet<string>): Promise<void> {
    const { agents, config, steps } = this.#deps
    await checkRunBy(body.run_by ?? [], agents)
    await checkSteps(readSteps(body.steps), { agents, coming, steps, settings: config })
  }

  /** Throws as `create`, `workflow_not_found`, and `conflict` for a workflow of a file. */
  change(id: string, change: WorkflowChange): Promise<Workflow> {
    return this.#changes.run(async () => {
      const before = await this.require(id)
      refuseFile(before)
      return this.#replace(before, change)
    })
  }
  /** The file of the workflow changed. */
  replaceFromFile(before: Workflow, body: NewWorkflow, also: readonly Statement[]): Promise<Workflow> {
    const { total_timeout_secs: total } = this.#deps.config
    return this.#changes.run(() =>
      this.#replace(before, { name: 'unnamed', description: '', total_timeout_secs: total, run_by: [], ...body }, also),
    )
  }
  async #replace(before: Workflow, change: WorkflowChange, also?: readonly Statement[]): Promise<Workflow> {
    const { agents, config, steps: types } = this.#deps
    const steps = change.steps && readSteps(change.steps)
    await checkRunBy(change.run_by ?? [], agents)
    if (steps) await checkSteps(steps, { agents, steps: types, settings: config })
    const workflow: Workflow = {
      ...before,
      revision: before.revision + 1,
      name: change.name ?? before.name,
      description: change.description ?? before.description,
      steps: steps ?? before.steps,
      totalTimeoutSecs: change.total_timeout_secs ?? before.totalTimeoutSecs,
      runBy: change.run_by ?? before.runBy,
      updatedAt: new Date().toISOString(),
    }
    await this.#write(workflow, 'updated', before, also)
    return workflow
  }

  /**
   * Throws `workflow_not_found`, and `conflict` for a workflow of a file of this home: another home may be gone for good.
   * Runs that began go on.
   */
  remove(id: string): Promise<void> {
    return this.#changes.run(async () => {
      const workflow = await this.require(id)
      const { file } = workflow
      if (file !== undefined && (await this.#deps.claims.find(file)).own !== undefined) refuseFile(workflow)
      await this.#remove(workflow)
    })
  }
  /** The file of the workflow is gone. */
  removeOfFile(workflow: Workflow): Promise<void> {
    return this.#changes.run(() => this.#remove(workflow))
  }
  async #remove({ id, name, file }: Workflow): Promise<void> {
    const claims = file === undefined ? [] : [this.#deps.claims.drop(file)]
    const statements = [...this.#store.remove(id), ...claims]
    await this.#commit(statements, { id, name, change: 'deleted' }, `workflow ${id} "${name}" deleted`)
  }

  async #write(
    workflow: Workflow,
    change: 'created' | 'updated',
    before?: Workflow,
    also: readonly Statement[] = [],
  ): Promise<void> {
    const { id, name, steps } = workflow
    const details = `workflow ${id} "${name}" ${change}: ${steps.length} ${steps.length === 1 ? 'step' : 'steps'}`
    const audited = before && { before: contentOf(before), after: contentOf(workflow) }
    await this.#commit(
      [...this.#store.write(workflow, this.#deps.config.kept_revisions), ...also],
      { id, name, change },
      details,
      audited,
    )
  }
  async #commit(
    statements: readonly Statement[],
    {
      id,
      name,
      change,
    }: { readonly id: string; readonly name: string; readonly change: 'created' | 'updated' | 'deleted' },
    details: string,
    audited?: { readonly before: Readonly<Record<string, unknown>>; readonly after: Readonly<Record<string, unknown>> },
  ): Promise<void> {
    const { audit, hooks, log } = this.#deps
    await this.#store.commit([
      ...statements,
      audit.entry({ event: 'workflow_changed', details, ...(audited && { change: audited }) }),
    ])
    log.info(`workflow ${change}`, { id, name })
    await hooks.emit(WorkflowChanged, { workflowId: id, name, change })
  }
}

const severalNamed = (name: string): Refusal =>
  new Refusal('conflict', `Several workflows have the name "${name}": use the id of one`)

function refuseFile({ file }: Workflow): void {
  if (file !== undefined)
    throw new Refusal('conflict', `The workflow is defined in workflows/${file}: change that file of the home`)
}
