import { Refusal } from 'svc/sdk'
import type { Child, Exit } from 'svc/sdk'
import type { Command } from './command.ts'

export interface ProcessLimits {
  readonly perAgent: number
  readonly idleSecs: number
  readonly lifeSecs: number
}
interface Held {
  readonly id: string
  readonly agentId: string
  readonly words: readonly string[]
  readonly startedAt: string
  readonly child: Child
  exit: Exit | undefined
  idle: NodeJS.Timeout | undefined
}
export interface ProcessView {
  readonly process_id: string
  readonly command: string
  readonly running: boolean
  readonly started_at: string
  readonly exit_code: number | null
  readonly ended_by: string | null
}

/**
 * Programs that run across calls. Each belongs to one agent and ends with it, when it is not read for long, or with the
 * plugin.
 */
export class Processes {
  readonly #limits: ProcessLimits
  readonly #held = new Map<string, Held>()
  constructor(limits: ProcessLimits) {
    this.#limits = limits
  }

  get running(): number {
    return [...this.#held.values()].filter(({ exit }) => !exit).length
  }

  /** Throws `rate_limit` when the agent has as many as it may have. */
  async start(command: Command, start: () => Promise<Child>): Promise<ProcessView> {
    const { perAgent } = this.#limits
    const own = this.#of(command.agent.id)
    if (own.filter(({ exit }) => !exit).length >= perAgent)
      throw new Refusal(
        'rate_limit',
        `This agent runs ${perAgent} processes already, the limit of plugins.shell.processes_per_agent. ` +
          'End one with process_kill first.',
      )
    // Ended processes stay until the agent reads them, up to the limit.
    for (const each of own.filter(({ exit }) => exit).slice(0, Math.max(0, own.length - perAgent))) this.#drop(each)
    const child = await start()
    const held: Held = {
      id: crypto.randomUUID(),
      agentId: command.agent.id,
      words: command.words,
      startedAt: new Date().toISOString(),
      child,
      exit: undefined,
      idle: undefined,
    }
    this.#held.set(held.id, held)
    void child.ended.then((exit) => {
      held.exit = exit
    })
    this.#touch(held)
    return toView(held)
  }

  /** Its output since the last call. The last output of an ended program is returned once, then it is forgotten. */
  poll(agentId: string, id: string): ProcessView & { readonly output: string; readonly dropped_bytes: number } {
    const held = this.#require(agentId, id)
    const { text, droppedBytes } = held.child.read()
    this.#touch(held)
    if (held.exit) this.#drop(held)
    return { ...toView(held), output: text, dropped_bytes: droppedBytes }
  }
  async write(agentId: string, id: string, data: string): Promise<void> {
    const held = this.#require(agentId, id)
    this.#touch(held)
    await held.child.write(data)
  }
  async kill(
    agentId: string,
    id: string,
  ): Promise<ProcessView & { readonly output: string; readonly dropped_bytes: number }> {
    const held = this.#require(agentId, id)
    held.exit = await held.child.kill()
    return this.poll(agentId, id)
  }
  list(agentId: string): readonly ProcessView[] {
    return this.#of(agentId).map(toView)
  }

  /** The agent was removed. */
  async clear(agentId: string): Promise<void> {
    const own = this.#of(agentId)
    for (const held of own) this.#drop(held)
    await Promise.all(own.map(({ child }) => child.kill()))
  }
  /** Forgets all; the children end with the plugin's scope. */
  end(): void {
    for (const held of this.#held.values()) this.#drop(held)
  }

  #of(agentId: string): readonly Held[] {
    return [...this.#held.values()].filter((held) => held.agentId === agentId)
  }
  #require(agentId: string, id: string): Held {
    const held = this.#held.get(id)
    // One of another agent is as unknown as one that never was.
    if (!held || held.agentId !== agentId)
      throw new Refusal('not_found', `There is no process ${id}. process_list shows those there are.`)
    return held
  }
  #touch(held: Held): void {
    clearTimeout(held.idle)
    held.idle = setTimeout(() => {
      this.#drop(held)
      void held.child.kill()
    }, this.#limits.idleSecs * 1000).unref()
  }
  #drop(held: Held): void {
    clearTimeout(held.idle)
    this.#held.delete(held.id)
  }
}

function toView({ id, words, startedAt, exit }: Held): ProcessView {
  return {
    process_id: id,
    command: words.join(' '),
    running: exit === undefined,
    started_at: startedAt,
    exit_code: exit?.code ?? null,
    ended_by: exit ? (exit.signal ?? exit.reason) : null,
  }
}
