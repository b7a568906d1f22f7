import { allowsHost } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Admission, Spawn, SpawnRequest } from 'svc/sdk'
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
  /** What the operator opened to programs. */
  readonly confinement: Required<Pick<SpawnRequest, 'read' | 'write' | 'unconfined'>>
  readonly defaults: ExecDefaults
}
/** A command an agent may run, and how. */
export interface Command {
  readonly agent: Agent
  readonly words: readonly string[]
  readonly cwd: string
  readonly limits: ExecLimits
  /** What is asked for each connection of the program. Absent where the manifest grants no network. */
  readonly network?: Admission
}

/** Whether the agent, as it is now, may still run what it runs. */
export async function mayStillRun(parts: CommandParts, agent: Agent, { words, cwd }: Command): Promise<boolean> {
  const { names } = await parts.spawn.find(words[0] ?? '', cwd, parts.path)
  return (
    readExecPolicy(agent.manifest.exec_policy, parts.defaults).permits(names) &&
    allows(agent.manifest.capabilities.shell, words, names)
  )
}

/** Places one program may ask for; each has its entry in the audit log. */
const MOST_PLACES = 1000

/**
 * From what the model wrote to words that may run. Throws `forbidden`, which is in the audit log then, and
 * `invalid_request`.
 */
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
  return {
    agent,
    words,
    cwd,
    limits,
    ...(agent.manifest.capabilities.network.length > 0 && { network: admission(parts, agent.id, words[0] ?? '') }),
  }
}

/**
 * The host patterns of the agent as they are when a program connects: one that runs long does not keep what was taken
 * away.
 */
function admission({ agents, audit }: CommandParts, agentId: string, program: string): Admission {
  const known = new Set<string>()
  return async (url) => {
    const patterns = (await agents.require(agentId)).manifest.capabilities.network
    const allowed = allowsHost(patterns, url)
    const place = `${allowed ? '' : 'denied: '}${program} to ${url.host}`
    if (!known.has(place)) {
      if (known.size >= MOST_PLACES)
        throw new Refusal('forbidden', `One program may ask for ${MOST_PLACES} places, and this one has`)
      known.add(place)
      await audit.write({ event: allowed ? 'network_access' : 'capability_check', agentId, details: place })
    }
    if (!allowed)
      throw new Refusal(
        'forbidden',
        `This agent may not reach ${url.host}. capabilities.network of its manifest allows: ${patterns.join(', ')}`,
      )
  }
}

/**
 * Text that only a shell understands goes to a shell, where the manifest allows one by name; everything else to no
 * shell at all.
 */
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
