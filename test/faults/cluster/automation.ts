import { setTimeout as delay } from 'node:timers/promises'
import type { Json } from '../../support/json.ts'
import { stepsOf, EFFECTS } from '../automation.ts'
import { until } from './client.ts'
import type { Client } from './client.ts'
import { agentOf, SETTLES_MS } from './load.ts'
import type { Load } from './load.ts'
import type { Marks } from './marks.ts'
import type { Receiver } from './receiver.ts'

const SCHEDULES = 3
const SOON_MS = 2_500
const EVENTS_MS = 400
const RUNS_MS = 900
const EVENTS_PATH = '/event/runs'

interface Round {
  readonly agentId: string
  readonly workflowId: string
  /** Labels of schedules, each with one slot. */
  readonly slots: string[]
  /** By input: the id of the run that was acknowledged. */
  readonly runs: Map<string, string>
  readonly key: string
  readonly triggerId: string
  /** Changes of the key: acknowledged, and sent without an answer. */
  events: number
  unknown: number
}

/**
 * Schedules, triggers and workflows, and a webhook that is told of each run that is completed. Results, steps and events
 * are counted by the receiver, tool calls by marks.
 */
export class AutomationLoad implements Load {
  readonly figures = { slots: 0, runs: 0, events: 0, webhook_events: 0 }
  readonly #client: Client
  readonly #receiver: Receiver
  readonly #marks: Marks
  #round: Round | undefined
  #isSubscribed = false
  constructor(client: Client, receiver: Receiver, marks: Marks) {
    this.#client = client
    this.#receiver = receiver
    this.#marks = marks
  }

  async prepare(round: number): Promise<void> {
    if (!this.#isSubscribed)
      await this.#client.make('/api/webhooks', 'id', {
        name: 'runs',
        url: this.#receiver.url + EVENTS_PATH,
        events: ['workflow_completed'],
      })
    this.#isSubscribed = true
    const agentId = await this.#client.make('/api/agents', 'agent_id', agentOf(`work-${round}`))
    const steps = stepsOf(`${this.#receiver.url}/{{run_input}}`, `work-${round}`)
    const workflowId = await this.#client.make('/api/workflows', 'workflow_id', { name: `flow-${round}`, steps })
    const key = `round.${round}`
    const triggerId = await this.#client.make('/api/triggers', 'trigger_id', {
      agent_id: agentId,
      pattern: { memory_key_pattern: { key_pattern: key } },
      prompt_template: `say t${round}-0-0`,
      cooldown_secs: 0,
      session_mode: 'new',
      delivery: { kind: 'webhook', url: `${this.#receiver.url}/trigger/${round}` },
    })
    this.#round = { agentId, workflowId, slots: [], runs: new Map(), key, triggerId, events: 0, unknown: 0 }
  }

  async run(round: number, signal: AbortSignal): Promise<void> {
    const state = this.#state
    await Promise.all([
      this.#addSchedules(state, round, signal),
      this.#causeEvents(state, signal),
      this.#startRuns(state, round, signal),
    ])
  }
  async #addSchedules(state: Round, round: number, signal: AbortSignal): Promise<void> {
    for (let n = 0; n < SCHEDULES && !signal.aborted; n++) {
      const label = `s${round}-${n}-0`
      const at = new Date(Date.now() + SOON_MS + n * 1_000).toISOString()
      const { status, body } = await this.#client.insist('POST', '/api/schedules', {
        agent_id: state.agentId,
        name: label,
        schedule: { kind: 'at', at },
        prompt: `mark ${label}`,
        session_mode: 'new',
        delivery: { kind: 'webhook', url: `${this.#receiver.url}/slot/${label}` },
      })
      if (status === 201) state.slots.push(label)
      // It was tried until the time had passed.
      else if (status !== 400) this.#client.problem(`schedule ${label} answered ${status}: ${JSON.stringify(body)}`)
    }
  }
  async #causeEvents(state: Round, signal: AbortSignal): Promise<void> {
    for (let n = 0; !signal.aborted; n++, await delay(EVENTS_MS)) {
      const answer = await this.#client.ask('PUT', `/api/memory/agents/${state.agentId}/kv/${state.key}`, { value: n })
      if (answer?.status === 200) state.events++
      else state.unknown++
    }
  }
  async #startRuns(state: Round, round: number, signal: AbortSignal): Promise<void> {
    for (let n = 0; !signal.aborted; n++, await delay(RUNS_MS)) {
      const input = `w${round}-${n}-0`
      state.runs.set(input, '')
      const path = `/api/workflows/${state.workflowId}/run?wait=false`
      state.runs.set(input, await this.#client.make(path, 'run_id', { input }))
    }
  }

  async check(round: number): Promise<readonly string[]> {
    const state = this.#state
    const { slots, runs, events, unknown } = state
    this.figures.slots += slots.length
    this.figures.runs += runs.size
    this.figures.events += events
    const problems: string[] = []
    const results = `/trigger/${round}`
    await until(
      () =>
        slots.every((label) => this.#receiver.taken.has(`/slot/${label}`)) &&
        (this.#receiver.taken.get(results)?.length ?? 0) >= events,
      SETTLES_MS,
    )
    for (const label of slots) {
      const [keys, marks] = [this.#receiver.keysAt(`/slot/${label}`), this.#marks.of(label)]
      if (keys !== 1) problems.push(`the slot ${label} sent ${keys} results`)
      if (marks > 1) problems.push(`the slot ${label} called its tool ${marks} times`)
    }
    const fired = this.#receiver.keysAt(results)
    if (fired < events || fired > events + unknown) {
      const { firings } = await this.#client.get(`/api/triggers/${state.triggerId}/history?limit=1000`)
      const { entries } = await this.#client.get('/api/audit/recent?limit=500&event_type=memory_access')
      const recorded = entries.filter(({ details }: Json) => details.startsWith(`set key "${state.key}" `)).length
      const [done, others] = [true, false].map((isDone) =>
        firings.filter(({ state: ended }: Json) => (ended === 'done') === isDone),
      )
      problems.push(
        `${events} events and ${unknown} that may have happened, but ${fired} results of the trigger; ` +
          `the trail has ${recorded} of them; ${done.length} firings are done; the others: ${JSON.stringify(others)}`,
      )
    }
    problems.push(...(await this.#checkRuns(runs)), ...(await this.#checkWebhook([...runs.values()])))
    return problems
  }
  /** Each key is taken once: another event of the same run has another one. */
  async #checkWebhook(runs: readonly string[]): Promise<readonly string[]> {
    const timesOf = (run: string): number =>
      (this.#receiver.taken.get(EVENTS_PATH) ?? []).filter(({ data }: Json) => data.details.includes(run)).length
    await until(() => runs.every((run) => timesOf(run) > 0), SETTLES_MS)
    this.figures.webhook_events = this.#receiver.taken.get(EVENTS_PATH)?.length ?? 0
    return runs.flatMap((run) => (timesOf(run) === 1 ? [] : [`the webhook got ${timesOf(run)} events of run ${run}`]))
  }
  async #checkRuns(runs: ReadonlyMap<string, string>): Promise<readonly string[]> {
    const problems: string[] = []
    for (const [input, id] of runs) {
      let run: Json
      await until(async () => {
        run = await this.#client.get(`/api/workflows/runs/${id}`)
        return !['Pending', 'Running'].includes(run.state)
      }, SETTLES_MS)
      if (run.state !== 'Completed') problems.push(`the run ${id} of ${input} is ${run.state}: ${run.error ?? ''}`)
      for (const effect of EFFECTS) {
        const keys = this.#receiver.keysAt(`/${input}/${id}/${effect}`)
        if (keys !== 1) problems.push(`step ${effect} of ${input} was done under ${keys} keys`)
      }
      const paths = [...this.#receiver.arrivals.keys()].filter((path) => path.startsWith(`/${input}/`))
      const ids = new Set(paths.map((path) => path.split('/')[2]))
      if (ids.size !== 1) problems.push(`${input} was asked for once, and ran ${ids.size} times`)
    }
    return problems
  }

  get #state(): Round {
    if (!this.#round) throw new Error('the round was not prepared')
    return this.#round
  }
}
