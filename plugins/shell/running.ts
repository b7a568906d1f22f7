import type { Child } from 'svc/sdk'
import type { Agent } from '../agents/contract.ts'
import { mayStillRun } from './command.ts'
import type { Command, CommandDeps } from './command.ts'

/** The programs that run for agents: they end when their agent loses the right to run them. */
export class Running {
  readonly #deps: CommandDeps
  readonly #children = new Map<Child, Command>()
  constructor(deps: CommandDeps) {
    this.#deps = deps
  }

  async start(command: Command, start: () => Promise<Child>): Promise<Child> {
    const child = await start()
    this.#children.set(child, command)
    void child.ended.then(() => this.#children.delete(child))
    // The manifest may have changed while the program started.
    const agent = await this.#deps.agents.find(command.agent.id)
    if (!agent) void child.kill()
    else if (agent.manifest !== command.agent.manifest) await this.recheck(agent)
    return child
  }

  /** Ends programs and connections that the manifest no longer allows. */
  async recheck(agent: Agent): Promise<void> {
    await Promise.all(
      [...this.#children].map(async ([child, command]) => {
        if (command.agent.id !== agent.id || command.agent.manifest === agent.manifest) return
        if (await mayStillRun(this.#deps, agent, command).catch(() => false /* its program is gone */))
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
