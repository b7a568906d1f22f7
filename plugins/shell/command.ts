import { allowsHost } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Admission, Spawn, SpawnRequest } from 'svc/sdk'
import type { Agent, Agents, AgentVariables } from '../agents/contract.ts'
import type { Audit } from '../audit/contract.ts'
import type { Workspaces } from '../files/contract.ts'
import { readExecPolicy } from './exec-policy.ts'
import type { ExecDefaults, ExecLimits } from './exec-policy.ts'
import { allows } from './patterns.ts'
import { splitWords } from './words.ts'

export interface CommandDeps {
  readonly agents: Agents
  readonly workspaces: Workspaces
  readonly audit: Audit
  readonly variables: AgentVariables
  readonly spawn: Spawn
  readonly path: readonly string[]
  /** What the operator lets programs access. */
  readonly confinement: Required<Pick<SpawnRequest, 'read' | 'write' | 'unconfined'>>
  readonly defaults: ExecDefaults
}
/** A command an agent may run, and how. */
export interface Command {
  readonly agent: Agent
  readonly words: readonly string[]
  readonly cwd: string
  readonly limits: ExecLimits
  /** Decides each connection of the program. Absent when the manifest grants no network. */
  readonly network?: Admission
}

/** Whether the current manifest of the agent still allows a command that runs. */
export async function mayStillRun(deps: CommandDeps, agent: Agent, { words, cwd }: Command): Promise<boolean> {
  const { names } = await deps.spawn.find(words[0] ?? '', cwd, deps.path)
  return (
    readExecPolicy(agent.manifest.exec_policy, deps.defaults).permits(names) &&
    allows(agent.manifest.capabilities.shell, words, names)
  )
}

/** Hosts one program may connect to: each adds an entry to the audit log. */
const MAX_HOSTS = 1000

/** The same as `checkCommand` for a command that runs now, which the audit log records. */
export async function readCommand(...given: Parameters<typeof checkCommand>): Promise<Command> {
  const found = await checkCommand(...given)
  const [{ audit }] = given
  await audit.write({
    event: 'shell_exec',
    agentId: found.agent.id,
    details: `runs ${JSON.stringify(found.words)}`,
  })
  return found
}

/**
 * Turns what the model wrote into a command that may run, in the workspace or the folder that `folderOf` gives. Throws
 * `invalid_request`, and `forbidden`, which the audit log records.
 */
export async function checkCommand(
  deps: CommandDeps,
  agentId: string,
  command: string,
  args: readonly string[] = [],
  folderOf: (agentId: string) => Promise<string> = (id) => deps.workspaces.root(id),
): Promise<Command> {
  const agent = await deps.agents.require(agentId)
  const patterns = agent.manifest.capabilities.shell
  const limits = readExecPolicy(agent.manifest.exec_policy, deps.defaults)
  const deny = async (what: string, why: string): Promise<never> => {
    await deps.audit.write({ event: 'capability_check', agentId: agent.id, details: `denied: shell "${what}"` })
    throw new Refusal('forbidden', why)
  }
  if (patterns.length === 0)
    return deny(command, 'This agent may not run programs: capabilities.shell of its manifest is empty.')
  const cwd = await folderOf(agent.id)
  const words = args.length > 0 ? [command, ...args] : await wordsOf(command, patterns, deny)
  const { names } = await deps.spawn.find(words[0] ?? '', cwd, deps.path)
  if (!limits.permits(names)) return deny(command, `exec_policy of this agent's manifest does not permit ${words[0]}.`)
  if (!allows(patterns, words, names))
    return deny(
      command,
      `This agent may not run "${words.join(' ')}". capabilities.shell of its manifest allows: ${patterns.join(', ')}.`,
    )
  return {
    agent,
    words,
    cwd,
    limits,
    ...(agent.manifest.capabilities.network.length > 0 && { network: admission(deps, agent.id, words[0] ?? '') }),
  }
}

/**
 * Reads the host patterns of the agent at each connection: a program that runs long loses what the manifest no longer
 * grants.
 */
function admission({ agents, audit }: CommandDeps, agentId: string, program: string): Admission {
  const recorded = new Set<string>()
  return async (url) => {
    const patterns = (await agents.require(agentId)).manifest.capabilities.network
    const allowed = allowsHost(patterns, url)
    const details = `${allowed ? '' : 'denied: '}${program} to ${url.host}`
    if (!recorded.has(details)) {
      if (recorded.size >= MAX_HOSTS)
        throw new Refusal(
          'forbidden',
          `One program may connect to ${MAX_HOSTS} hosts, and this one has reached that limit`,
        )
      recorded.add(details)
      await audit.write({ event: allowed ? 'network_access' : 'capability_check', agentId, details })
    }
    if (!allowed)
      throw new Refusal(
        'forbidden',
        `This agent may not reach ${url.host}. capabilities.network of its manifest allows: ${patterns.join(', ')}`,
      )
  }
}

/** Passes text that needs a shell to a shell, if the manifest names one; everything else runs without a shell. */
async function wordsOf(
  command: string,
  patterns: readonly string[],
  deny: (what: string, why: string) => Promise<never>,
): Promise<readonly string[]> {
  const split = splitWords(command)
  if (split.kind === 'words') return split.words
  if (split.kind === 'malformed') throw new Refusal('invalid_request', `The command cannot be read: ${split.reason}.`)
  for (const shell of ['sh', 'bash']) {
    const words = [shell, '-c', command]
    if (allows(patterns, words, [shell])) return words
  }
  return deny(
    command,
    `The command needs a shell because of ${split.operator}, and this agent may not use one. ` +
      'Run one program at a time, and quote what is meant literally.',
  )
}
