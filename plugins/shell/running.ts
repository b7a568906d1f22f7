import type { Child } from 'svc/sdk'
import type { Agent } from '../agents/contract.ts'
import { mayStillRun } from './command.ts'
import type { Command, CommandParts } from './command.ts'

/** Every program that runs for an agent, so that what is taken from the agent is taken from them. */
export class Running {
  readonly #parts: CommandParts
  readonly #children = new Map<Child, Command>()
  constructor(parts: CommandParts) {
    this.#parts = parts
  }

  async start(command: Command, start: () => Promise<Child>): Promise<Child> {
    const child = await start()
    this.#children.set(child, command)
    void child.ended.then(() => this.#children.delete(child))
    // Something may have been taken away while it was started.
    const agent = await this.#parts.agents.find(command.agent.id)
    if (!agent) void child.kill()
    else if (agent.manifest !== command.agent.manifest) await this.recheck(agent)
    return child
  }

  /** Ends what the agent may not run any more, and connections it may not have any more. */
  async recheck(agent: Agent): Promise<void> {
    await Promise.all(
      [...this.#children].map(async ([child, command]) => {
        if (command.agent.id !== agent.id || command.agent.manifest === agent.manifest) return
        if (await mayStillRun(this.#parts, agent, command).catch(() => false /* its program is gone */))
          await child.recheckNetwork()
        else void child.kill()
      }),
    )
  }

  async clear(agentId: string): Promise<void> {
    const own = [...this.#children].filter(([, { agent }]) => agent.id === agentId)
    await Promise.all(own.map(([child]) => child.kill()))
  }
}
