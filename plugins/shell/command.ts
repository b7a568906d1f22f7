import { Refusal } from 'svc/sdk'
import type { Spawn } from 'svc/sdk'
import type { Agent, Agents } from '../agents/contract.ts'
import type { Audit } from '../audit/contract.ts'
import type { Workspaces } from '../files/contract.ts'
import { readExecPolicy } from './exec-policy.ts'
import type { ExecDefaults, ExecLimits } from './exec-policy.ts'
import { allows } from './patterns.ts'
import { splitWords } from './words.ts'

export interface CommandParts {
  readonly agents: Agents
  readonly workspaces: Workspaces
  readonly audit: Audit
  readonly spawn: Spawn
  readonly path: readonly string[]
  readonly defaults: ExecDefaults
}
/** A command an agent may run, and how. */
export interface Command {
  readonly agent: Agent
  readonly words: readonly string[]
  readonly cwd: string
  readonly limits: ExecLimits
  /** Where the manifest grants no network, a program gets none either. */
  readonly network: boolean
}

/** From what the model wrote to words that may run. Throws `forbidden`, which is in the audit log then, and `invalid_request`. */
export async function readCommand(
  parts: CommandParts,
  agentId: string,
  command: string,
  args: readonly string[] = [],
): Promise<Command> {
  const agent = await parts.agents.require(agentId)
  const patterns = agent.manifest.capabilities.shell
  const limits = readExecPolicy(agent.manifest.exec_policy, parts.defaults)
  const deny = async (what: string, why: string): Promise<never> => {
    await parts.audit.write({ event: 'capability_check', agentId: agent.id, details: `denied: shell "${what}"` })
    throw new Refusal('forbidden', why)
  }
  if (patterns.length === 0)
    return deny(command, 'This agent may not run programs: capabilities.shell of its manifest is empty.')
  const cwd = await parts.workspaces.root(agent.id)
  const words = args.length > 0 ? [command, ...args] : await wordsOf(command, patterns, deny)
  const { names } = await parts.spawn.find(words[0] ?? '', cwd, parts.path)
  if (!limits.permits(names)) return deny(command, `exec_policy of this agent's manifest does not permit ${words[0]}.`)
  if (!allows(patterns, words, names))
    return deny(
      command,
      `This agent may not run "${words.join(' ')}". capabilities.shell of its manifest allows: ${patterns.join(', ')}.`,
    )
  await parts.audit.write({ event: 'shell_exec', agentId: agent.id, details: `runs ${JSON.stringify(words)}` })
  return { agent, words, cwd, limits, network: agent.manifest.capabilities.network.length > 0 }
}

/** Text that only a shell understands goes to a shell, where the manifest allows one by name; everything else to no shell at all. */
async function wordsOf(
  command: string,
  patterns: readonly string[],
  deny: (what: string, why: string) => Promise<never>,
): Promise<readonly string[]> {
  const split = splitWords(command)
  if (split.kind === 'words') return split.words
  if (split.kind === 'broken') throw new Refusal('invalid_request', `The command cannot be read: ${split.why}.`)
  for (const shell of ['sh', 'bash']) {
    const words = [shell, '-c', command]
    if (allows(patterns, words, [shell])) return words
  }
  return deny(
    command,
    `The command needs a shell because of ${split.sign}, and this agent may not use one. Run one program at a time, and quote what is meant literally.`,
  )
}
