import { randomUUID } from 'node:crypto'
import { cp, mkdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { allowsHost, removeFolder } from 'svc/internal'
import { commandLine, Refusal } from 'svc/sdk'
import type { Admission, Exit, Spawn, SpawnRequest, ToolCallContext, Vault } from 'svc/sdk'
import type { Agents, AgentVariables } from '../../agents/contract.ts'
import type { Audit } from '../../audit/contract.ts'
import type { Workspaces } from '../../files/contract.ts'
import type { Skill, SkillTool } from '../manifest/skill.ts'
import { readVariableOf } from '../variables.ts'
import { takeFiles, saveOutput } from './files.ts'
import type { Outcome } from './outcome.ts'
import { linkPackages } from './packages.ts'

export interface ProgramDeps {
  readonly spawn: Spawn
  readonly agents: Pick<Agents, 'require'>
  readonly audit: Audit
  readonly vault: Vault
  /** Those of the agent come before those of the skill. */
  readonly variables: AgentVariables
  readonly workspaces: () => Workspaces | undefined
  /** A folder of its own for each call is made in it. */
  readonly runs: string
  readonly limits: ProgramLimits
}
export interface ProgramLimits {
  readonly timeoutSecs: number
  readonly outputBytes: number
  readonly outputFiles: number
}
type Program = Pick<SpawnRequest, 'command' | 'args' | 'read'>

const STDERR_BYTES = 8192
const SECRET_CHARS = 8
const MASK = '***'

/**
 * Runs a tool of a skill as a program: `{tool, input}` as JSON on its standard input, its answer on the output. It sees
 * a copy of the files of the skill in a folder that is gone afterwards, and nothing else but what its permissions name.
 */
export async function runProgram(
  deps: ProgramDeps,
  skill: Skill,
  tool: SkillTool,
  input: Readonly<Record<string, unknown>>,
  call: ToolCallContext,
): Promise<Outcome> {
  const { limits, runs, spawn } = deps
  const env = await readEnvironment(deps, skill, call.agentId)
  const cwd = join(runs, randomUUID())
  try {
    await mkdir(cwd, { recursive: true, mode: 0o700 })
    await cp(skill.folder, cwd, { recursive: true, filter: (path) => !basename(path).startsWith('.') })
    const given = await takeFiles(deps.workspaces(), { skill, tool, input, folder: cwd, agentId: call.agentId })
    const packages = await linkPackages(skill.packages, cwd)
    const output = new Output(limits.outputBytes)
    const refused: string[] = []
    const network = admission(deps, skill, call.agentId)
    const child = await spawn.start({
      ...programOf(skill, packages),
      cwd,
      ...(network && { network }),
      env,
      approvedEnv: Object.keys(env),
      input: 'open',
      timeoutMs: limits.timeoutSecs * 1000,
      signal: call.signal,
      onConnectionFailure: (url, why) => void refused.push(`${url.host}: ${why}`),
      onOutput(bytes, from) {
        output.add(bytes, from)
        if (output.isFull) void child.kill()
      },
    })
    // One that ends before it has read its input is judged by its exit.
    await child.write(JSON.stringify({ tool: tool.name, input: given })).catch(() => undefined)
    child.closeInput()
    const exit = await child.ended
    call.signal.throwIfAborted()
    const hide = masking(env)
    const failure = describeFailure(exit, output, limits)
    if (failure !== undefined) {
      const said = [hide(output.stderr.trim()), ...refused.slice(0, 5)].filter((part) => part !== '').join('\n')
      return { failed: true, text: said === '' ? failure : `${failure}\n${said}` }
    }
    const files = await saveOutput(deps.workspaces(), {
      skill,
      folder: cwd,
      agentId: call.agentId,
      maxFiles: limits.outputFiles,
    })
    return { failed: false, text: hide(output.stdout), files }
  } finally {
    await removeFolder(cwd)
  }
}

/** `packages`: folders that it reads besides. */
function programOf({ runtime, entry }: Skill, packages: readonly string[]): Program {
  if (runtime === 'python') return { command: 'python3', args: ['-B', entry] }
  if (runtime === 'node') return { command: process.execPath, args: [entry], read: [process.execPath, ...packages] }
  return { command: 'sh', args: [entry] }
}

/** Throws `conflict` for a variable that the skill needs and that has no value. */
async function readEnvironment(
  { variables: ofAgents, vault }: ProgramDeps,
  skill: Skill,
  agentId: string,
): Promise<Readonly<Record<string, string>>> {
  const { variables } = skill
  const own = variables.length === 0 ? {} : await ofAgents.of(agentId)
  const env: Record<string, string> = {}
  for (const variable of variables) {
    const { name, env: from, required } = variable
    const value = own[from] ?? (await readVariableOf(vault, skill, variable))
    if (value !== undefined) env[name] = value
    else if (required)
      throw new Refusal(
        'conflict',
        `The skill "${skill.name}" needs the variable ${name}: set it with ${commandLine(`skill config set ${skill.name} ${name}`)}, or ${from} in the environment of the daemon`,
      )
  }
  return env
}
function masking(env: Readonly<Record<string, string>>): (text: string) => string {
  const values = Object.values(env).filter((value) => value.length >= SECRET_CHARS)
  return (text) => values.reduce((masked, value) => masked.replaceAll(value, MASK), text)
}

/** Hosts that both the skill and the manifest of the agent name, as it is at each connection. */
function admission({ agents, audit }: ProgramDeps, skill: Skill, agentId: string): Admission | undefined {
  const hosts = skill.permissions.flatMap((each) =>
    each.startsWith('network:') ? [each.slice('network:'.length)] : [],
  )
  if (hosts.length === 0) return undefined
  return async (url) => {
    const { capabilities } = (await agents.require(agentId)).manifest
    const [bySkill, byAgent] = [allowsHost(hosts, url), allowsHost(capabilities.network, url)]
    const allowed = bySkill && byAgent
    await audit.write({
      event: allowed ? 'network_access' : 'capability_check',
      agentId,
      details: `${allowed ? '' : 'denied: '}skill ${skill.name} to ${url.host}`,
    })
    if (!bySkill)
      throw new Refusal('forbidden', `The skill "${skill.name}" does not name ${url.host} in its capabilities`)
    if (!byAgent) throw new Refusal('forbidden', `capabilities.network of this agent does not allow ${url.host}`)
  }
}

/** `undefined` when it ended well. */
function describeFailure(exit: Exit, output: Output, limits: ProgramLimits): string | undefined {
  if (output.isFull) return `it wrote more than ${limits.outputBytes} bytes (plugins.skills.max_output_bytes)`
  if (exit.reason === 'timeout')
    return `it took longer than ${limits.timeoutSecs} seconds (plugins.skills.timeout_secs)`
  if (exit.code === 0) return undefined
  return exit.code === null ? `it was ended by ${exit.signal ?? 'a signal'}` : `exit code ${exit.code}`
}

/** What a program wrote: its answer whole, of its errors the end. */
class Output {
  readonly #max: number
  readonly #stdout: Uint8Array[] = []
  #stderr: Buffer = Buffer.alloc(0)
  #bytes = 0
  constructor(max: number) {
    this.#max = max
  }
  get isFull(): boolean {
    return this.#bytes > this.#max
  }
  get stdout(): string {
    return Buffer.concat(this.#stdout).toString('utf8').trim()
  }
  get stderr(): string {
    return this.#stderr.toString('utf8')
  }
  add(bytes: Uint8Array, from: 'stdout' | 'stderr'): void {
    if (from === 'stderr') {
      this.#stderr = Buffer.concat([this.#stderr, bytes]).subarray(-STDERR_BYTES)
      return
    }
    this.#bytes += bytes.length
    if (!this.isFull) this.#stdout.push(Uint8Array.from(bytes))
  }
}
