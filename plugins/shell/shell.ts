import { MASK } from 'svc/internal'
import { idempotencyKey, Refusal } from 'svc/sdk'
import type { Admission, Exit, Recovery, ToolCallContext } from 'svc/sdk'
import type { Agent } from '../agents/contract.ts'
import type { WorkingFolder } from '../files/contract.ts'
import { checkCommand, readCommand } from './command.ts'
import type { Command, CommandDeps } from './command.ts'
import { Processes } from './processes.ts'
import type { ProcessLimits } from './processes.ts'
import { Running } from './running.ts'

/** The idempotency key of the call, for programs that pass it on to what they change. */
const KEY_VARIABLE = 'SVC_IDEMPOTENCY_KEY'
const SECRET_CHARS = 8
const CUT_OFF = 'programs have no network on this machine: that needs bubblewrap'

interface ExecInput {
  readonly command: string
  readonly timeout_seconds: number
}

/** Runs the programs of agents. */
export class Shell {
  readonly processes: Processes
  readonly #deps: { readonly commandDeps: CommandDeps; readonly limits: ProcessLimits } & {
    readonly processes: Processes
    readonly running: Running
  }
  constructor(commandDeps: CommandDeps, limits: ProcessLimits) {
    this.processes = new Processes(limits)
    this.#deps = { commandDeps, limits, processes: this.processes, running: new Running(commandDeps) }
  }

  /** Throws for a command that would be refused, whoever approves it. `isStart`: it goes on running. */
  async check(agentId: string, command: string, args: readonly string[], isStart: boolean): Promise<void> {
    const { commandDeps } = this.#deps
    if (isStart || commandDeps.workspaces.isFolder) await checkCommand(commandDeps, agentId, command, args)
    // The call itself makes a copy of the workspace: until then only programs outside of it can be looked for.
    else if (command.trimStart().split(/\s/, 1)[0]?.includes('/') === false)
      await checkCommand(commandDeps, agentId, command, args, async () => '/')
  }

  /** Runs a program to its end. Throws as `readCommand` and `WorkingFolder.save` do, then with what the program said. */
  async exec(input: ExecInput, call: ToolCallContext): Promise<string> {
    const { commandDeps } = this.#deps
    const opened: WorkingFolder[] = []
    try {
      const found = await readCommand(commandDeps, call.agentId, input.command, [], async (agentId) => {
        const folder = await commandDeps.workspaces.open(agentId)
        opened.push(folder)
        return folder.path
      })
      const answer = await this.#run(found, input, call)
      for (const folder of opened) await saveChanges(folder, answer)
      return answer
    } finally {
      for (const folder of opened) await folder[Symbol.asyncDispose]()
    }
  }
  async #run(found: Command, input: ExecInput, { agentId, turnId, callId, signal }: ToolCallContext): Promise<string> {
    const { commandDeps, running } = this.#deps
    const variables = await commandDeps.variables.of(agentId)
    const {
      words: [name = '', ...args],
      cwd,
      limits: own,
      network,
    } = found
    const seconds = Math.min(input.timeout_seconds, own.timeoutSecs)
    const child = await running.start(found, () =>
      commandDeps.spawn.start({
        command: name,
        args,
        cwd,
        ...(network && { network }),
        ...commandDeps.confinement,
        path: commandDeps.path,
        ...environment({ turnId, callId }, variables),
        signal,
        outputBytes: own.outputBytes,
        timeoutMs: seconds * 1000,
        silenceMs: own.silenceSecs * 1000,
      }),
    )
    const exit = await child.ended
    const { text, droppedBytes } = child.read()
    const lines = [
      describeExit(exit, seconds, own.silenceSecs),
      (await isCutOff(commandDeps, network)) ? `[${CUT_OFF}]` : '',
      droppedBytes > 0 ? `[the first ${droppedBytes} bytes are not shown]` : '',
    ].filter((line) => line !== '')
    return [...lines, text === '' ? '(no output)' : masked(text, variables)].join('\n')
  }

  /** Starts a program that goes on running. Throws as `readCommand` and `Processes.start` do. */
  async start(
    input: { readonly command: string; readonly args: readonly string[] },
    { agentId, turnId, callId }: ToolCallContext,
  ): Promise<string> {
    const { commandDeps, processes, running, limits } = this.#deps
    const found = await readCommand(commandDeps, agentId, input.command, input.args)
    const {
      words: [name = '', ...args],
      cwd,
      network,
    } = found
    const view = await processes.start(found, () =>
      running.start(found, () =>
        commandDeps.spawn.start({
          command: name,
          args,
          cwd,
          ...(network && { network }),
          ...commandDeps.confinement,
          path: commandDeps.path,
          ...environment({ turnId, callId }),
          input: 'open',
          background: true,
          timeoutMs: limits.lifeSecs * 1000,
          outputBytes: commandDeps.defaults.outputBytes,
        }),
      ),
    )
    return JSON.stringify((await isCutOff(commandDeps, network)) ? { ...view, note: CUT_OFF } : view)
  }

  /** Nobody knows what a program did before it was cut off. */
  unknownOutcome(command: string, call: ToolCallContext): Recovery {
    return {
      outcome: 'unknown',
      text:
        `unknown: the service stopped while "${command.slice(0, 200)}" ran, which ended the program. ` +
        `It may have had a part of its effect, and was not run again. Its ${KEY_VARIABLE} was ${idempotencyKey(call)}. ` +
        'Check before you repeat it.',
    }
  }

  /** Ends programs that the changed manifest no longer allows. */
  recheck(agent: Agent): Promise<void> {
    return this.#deps.running.recheck(agent)
  }
  /** The agent was removed. */
  async clear(agentId: string): Promise<void> {
    await Promise.all([this.processes.clear(agentId), this.#deps.running.clear(agentId)])
  }
}

async function saveChanges(folder: WorkingFolder, answer: string): Promise<void> {
  try {
    await folder.save()
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    throw new Refusal(error.code, `${error.message}\n${answer}`, { cause: error })
  }
}
async function isCutOff({ spawn }: CommandDeps, network: Admission | undefined): Promise<boolean> {
  return network !== undefined && (await spawn.isolation()).network === 'none'
}

function environment(
  call: Pick<ToolCallContext, 'turnId' | 'callId'>,
  variables: Readonly<Record<string, string>> = {},
) {
  const env = { ...variables, [KEY_VARIABLE]: idempotencyKey(call) }
  return { env, approvedEnv: Object.keys(env) }
}
/** What a program prints reaches the model: its secrets do not. Shorter ones occur in ordinary words. */
function masked(text: string, variables: Readonly<Record<string, string>>): string {
  const secrets = Object.values(variables).filter(({ length }) => length >= SECRET_CHARS)
  return secrets.reduce((shown, secret) => shown.replaceAll(secret, MASK), text)
}
function describeExit({ code, signal, reason }: Exit, timeoutSecs: number, silenceSecs: number): string {
  if (reason === 'timeout') return `stopped: it took longer than ${timeoutSecs} seconds`
  if (reason === 'silence') return `stopped: it wrote nothing for ${silenceSecs} seconds`
  if (reason === 'killed') return 'stopped'
  return code === null ? `ended by ${signal ?? 'a signal'}` : `exit code ${code}`
}
