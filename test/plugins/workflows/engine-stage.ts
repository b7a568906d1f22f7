import type { PluginDatabase } from 'svc/sdk'
import type { Database } from '../../../core/storage/database.ts'
import type { JobOutcome } from '../../../plugins/queue/contract.ts'
import type { StepCall, StepType } from '../../../plugins/workflows/contract.ts'
import type { Step, Workflow } from '../../../plugins/workflows/definition.ts'
import { migrations } from '../../../plugins/workflows/migrations.ts'
import { RunChanges } from '../../../plugins/workflows/runs/changes.ts'
import { Engine } from '../../../plugins/workflows/runs/engine.ts'
import { RunStore } from '../../../plugins/workflows/runs/store.ts'
import type { NewRun } from '../../../plugins/workflows/runs/store.ts'
import { open, recorder as recordLog } from '../../core/storage/engines.ts'
import type { EngineName } from '../../core/storage/engines.ts'
import { ManualClock } from '../../support/manual-clock.ts'

export const RUN = 'run'
export const step = (name: string, more: Partial<Step> = {}): Step => ({
  name,
  type: 'act',
  agent: undefined,
  prompt: '',
  with: {},
  mode: 'sequential',
  timeoutSecs: 60,
  errorMode: 'fail',
  maxRetries: 3,
  retryDelaySecs: 0,
  outputVar: undefined,
  condition: '',
  maxIterations: 5,
  until: '',
  ...more,
})
export const steps: readonly Step[] = [
  step('first', { outputVar: 'first' }),
  step('left', { mode: 'fan_out' }),
  step('right', { mode: 'fan_out' }),
  step('both', { mode: 'collect' }),
  step('twice', { mode: 'loop', maxIterations: 2, until: 'never' }),
  step('not', { mode: 'conditional', condition: 'absent' }),
  step('flaky', { errorMode: 'retry' }),
]
export const OUTPUT = 'flaky(twice(twice(left(first(x))\n\n---\n\nright(first(x)))))'

class Killed extends Error {}
interface Fault {
  /** Number of the write, from 0. */
  readonly at: number
  readonly isDone: boolean
}

/** A database whose process dies at one of its writes: none is made after that. */
function mortal(real: PluginDatabase, fault: Fault | undefined) {
  let writes = 0
  let isDead = false
  const write = async <T>(work: () => Promise<T>): Promise<T> => {
    if (isDead) throw new Killed()
    if (writes++ !== fault?.at) return work()
    isDead = true
    if (fault.isDone) await work()
    throw new Killed()
  }
  const db: PluginDatabase = {
    dialect: real.dialect,
    all: (sql, ...values) => real.all(sql, ...values),
    one: (sql, ...values) => real.one(sql, ...values),
    sql: (sql, ...values) => real.sql(sql, ...values),
    run: (sql, ...values) => write(() => real.run(sql, ...values)),
    batch: (statements) => write(() => real.batch(statements)),
  }
  return { db, died: () => isDead }
}

/** One process that works on runs. `act` is what its steps do. */
export function startEngine(database: Database, act: StepType['run'], fault?: Fault) {
  const { db, died } = mortal(database.sql, fault)
  const clock = new ManualClock()
  const store = new RunStore(db, recordLog().log)
  const type: StepType = { name: 'act', description: '', check() {}, run: act }
  const ended: string[] = []
  const engine = new Engine({
    store,
    audit: { entry: () => db.sql`SELECT 1` },
    agents: { find: () => Promise.resolve(undefined), findByName: () => Promise.resolve(undefined) },
    stepTypes: { find: () => type, leaving: () => undefined, explainMissing: (name) => name },
    pluginsLoaded: () => Promise.resolve(),
    unloaded: new AbortController().signal,
    hooks: { emit: () => Promise.resolve() },
    clock,
    log: { info() {}, warn() {} },
    changes: new RunChanges(),
    limits: { outputChars: 1_000, renderedChars: 1_000 },
    wake: () => Promise.resolve(),
    stopSteps: () => Promise.resolve(),
    ended: (state) => ended.push(state),
  })
  const work = (signal = new AbortController().signal): Promise<JobOutcome> =>
    engine.work({ lane: 'workflow', id: RUN, payload: null, failures: 0, losses: 0, createdAt: 0, signal })
  return { work, store, died, ended, clock }
}

export function workflowOf(workflowSteps: readonly Step[]): Workflow {
  return {
    id: 'w',
    revision: 1,
    name: 'flow',
    description: '',
    steps: workflowSteps,
    totalTimeoutSecs: 3_600,
    file: undefined,
    runBy: [],
    createdAt: '',
    updatedAt: '',
  }
}
export function newRun(id: string, workflowSteps: readonly Step[]): NewRun {
  return {
    id,
    workflow_id: 'w',
    workflow_name: 'flow',
    input: 'x',
    cause: 'api',
    depth: 0,
    hops: 0,
    parent_run_id: null,
    parent_key: null,
    rerun_of: null,
    definition: JSON.stringify(workflowOf(workflowSteps)),
    position: { index: 0, iteration: 1, input: 'x' },
    stepsCompleted: 0,
    asker: null,
  }
}

export async function prepare(workflowSteps: readonly Step[], engine: EngineName = 'sqlite'): Promise<Database> {
  const { database } = await open(engine)
  await database.migrate('workflows', migrations)
  const store = new RunStore(database.sql, recordLog().log)
  await store.commit([store.insert(newRun(RUN, workflowSteps), 0, 10)])
  return database
}

/** Records its calls. The first attempt of a flaky step fails. */
export function recorder() {
  const calls: Pick<StepCall, 'key' | 'step' | 'wasCutOff'>[] = []
  const act: StepType['run'] = ({ key, step: name, wasCutOff, input, attempt }) => {
    calls.push({ key, step: name, wasCutOff })
    if (name === 'flaky' && attempt === 1) return Promise.reject(new Error('not yet'))
    return Promise.resolve({ outcome: 'done', output: `${name.split(' ')[0]}(${input})` })
  }
  return { calls, act }
}
