import * as v from 'valibot'
import { defineTool, idempotencyKey } from 'svc/sdk'
import type { Capability } from '../agents/contract.ts'
import type { Admission, AnyTool, Exit, Recovery, ToolCallContext } from 'svc/sdk'
import { readCommand } from './command.ts'
import type { CommandDeps } from './command.ts'
import { assessCommand } from './harm.ts'
import type { Processes, ProcessLimits } from './processes.ts'
import type { Running } from './running.ts'

/**
 * Security facts 1.2: words from outside do not become commands unless someone answers for them. A program may have
 * read the network.
 */
const guarded = {
  needs: 'shell' satisfies Capability,
  refuses: ['ExternalNetwork', 'UntrustedAgent', 'UserInput'],
  labels: ['ExternalNetwork'],
} as const
/** The idempotency key of the call, for programs that pass it on to what they change. */
const KEY_VARIABLE = 'SVC_IDEMPOTENCY_KEY'
const CUT_OFF = 'programs have no network on this machine: that needs bubblewrap'
const command = v.pipe(v.string(), v.minLength(1), v.maxLength(32_768))
const processId = v.pipe(v.string(), v.minLength(1), v.maxLength(64), v.description('As process_start answered'))

interface ShellToolsDeps {
  readonly commandDeps: CommandDeps
  readonly running: Running
  readonly processes: Processes
  readonly limits: ProcessLimits
}

export function shellTools(
  commandDeps: CommandDeps,
  running: Running,
  processes: Processes,
  limits: ProcessLimits,
): readonly AnyTool[] {
  const deps: ShellToolsDeps = { commandDeps, running, processes, limits }
  return [execTool(deps), startTool(deps), pollTool(deps), writeTool(deps), killTool(deps), listTool(deps)]
}

async function isCutOff({ spawn }: CommandDeps, network: Admission | undefined): Promise<boolean> {
  return network !== undefined && (await spawn.isolation()).network === 'none'
}

function execTool({ commandDeps, running }: ShellToolsDeps): AnyTool {
  return defineTool({
    ...guarded,
    name: 'shell_exec',
    risk: 'execute',
    polls: true,
    timeoutSecs: 130,
    description:
      'Run a program in the workspace and wait for its end. Answers its exit code and its output. ' +
      'The command is split into words without a shell: quote words with spaces; ' +
      'pipes, redirections, globs and variables work only for agents that are allowed a shell.',
    input: v.object({
      command: v.pipe(command, v.description('The program and its arguments, such as git status')),
      timeout_seconds: v.optional(v.pipe(v.number(), v.minValue(1), v.maxValue(120), v.description('At most 120')), 30),
    }),
    assess: (input) => assessCommand(input.command),
    async run(input, { agentId, turnId, callId, signal }) {
      const found = await readCommand(commandDeps, agentId, input.command)
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
          ...keyOf({ turnId, callId }),
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
      return [...lines, text === '' ? '(no output)' : text].join('\n')
    },
    recover: (input, call) => unknownOutcome(input.command, call),
  })
}

function startTool({ commandDeps, running, processes, limits }: ShellToolsDeps): AnyTool {
  return defineTool({
    ...guarded,
    name: 'process_start',
    risk: 'execute',
    description:
      'Start a program in the workspace that goes on running: a server, a watcher, an interpreter. ' +
      'Answers JSON with its process_id. It ends with the agent, after some minutes without process_poll or ' +
      'process_write, or with process_kill.',
    input: v.object({
      command: v.pipe(command, v.description('The program, or a whole command when there are no args')),
      args: v.optional(v.pipe(v.array(v.string()), v.maxLength(1000)), []),
    }),
    // It goes on running and can be written to, which an assessment of its words does not cover.
    assess: (input) => {
      const { intent, harm } = assessCommand(input.command, input.args)
      return { intent: `${intent} in the background`, harm: harm === 'critical' ? harm : 'high', standing: 'once' }
    },
    async run(input, { agentId, turnId, callId }) {
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
            ...keyOf({ turnId, callId }),
            input: 'open',
            background: true,
            timeoutMs: limits.lifeSecs * 1000,
            outputBytes: commandDeps.defaults.outputBytes,
          }),
        ),
      )
      return JSON.stringify((await isCutOff(commandDeps, network)) ? { ...view, note: CUT_OFF } : view)
    },
  })
}

function pollTool({ processes }: ShellToolsDeps): AnyTool {
  return defineTool({
    name: 'process_poll',
    risk: 'read',
    needs: 'shell' satisfies Capability,
    polls: true,
    labels: guarded.labels,
    description: 'The output of a process since the last call, and whether it still runs. Answers JSON.',
    input: v.object({ process_id: processId }),
    async run(input, { agentId }) {
      return JSON.stringify(processes.poll(agentId, input.process_id))
    },
  })
}

function writeTool({ processes }: ShellToolsDeps): AnyTool {
  return defineTool({
    ...guarded,
    name: 'process_write',
    risk: 'execute',
    description: 'Write to the standard input of a process. End a line with \\n.',
    input: v.object({ process_id: processId, data: v.pipe(v.string(), v.maxLength(65_536)) }),
    assess: () => ({ intent: 'write to a program it runs', standing: 'once' }),
    async run(input, { agentId }) {
      await processes.write(agentId, input.process_id, input.data)
      return 'Written.'
    },
  })
}

function killTool({ processes }: ShellToolsDeps): AnyTool {
  return defineTool({
    name: 'process_kill',
    risk: 'write',
    needs: 'shell' satisfies Capability,
    labels: guarded.labels,
    description: 'End a process and all it started. Answers JSON with its last output.',
    input: v.object({ process_id: processId }),
    async run(input, { agentId }) {
      return JSON.stringify(await processes.kill(agentId, input.process_id))
    },
  })
}

function listTool({ processes }: ShellToolsDeps): AnyTool {
  return defineTool({
    name: 'process_list',
    risk: 'read',
    needs: 'shell' satisfies Capability,
    polls: true,
    description: 'The processes of this agent. Answers a JSON array.',
    input: v.object({}),
    async run(_, { agentId }) {
      return JSON.stringify(processes.list(agentId))
    },
  })
}

function keyOf(call: Pick<ToolCallContext, 'turnId' | 'callId'>) {
  return { env: { [KEY_VARIABLE]: idempotencyKey(call) }, approvedEnv: [KEY_VARIABLE] }
}
/** Nobody knows what a program did before it was cut off. */
function unknownOutcome(command: string, call: ToolCallContext): Promise<Recovery> {
  return Promise.resolve({
    outcome: 'unknown',
    text:
      `unknown: the service stopped while "${command.slice(0, 200)}" ran, which ended the program. ` +
      `It may have had a part of its effect, and was not run again. Its ${KEY_VARIABLE} was ${idempotencyKey(call)}. ` +
      'Check before you repeat it.',
  })
}

function describeExit({ code, signal, reason }: Exit, timeoutSecs: number, silenceSecs: number): string {
  if (reason === 'timeout') return `stopped: it took longer than ${timeoutSecs} seconds`
  if (reason === 'silence') return `stopped: it wrote nothing for ${silenceSecs} seconds`
  if (reason === 'killed') return 'stopped'
  return code === null ? `ended by ${signal ?? 'a signal'}` : `exit code ${code}`
}
