import * as v from 'valibot'
import { defineTool } from 'svc/sdk'
import type { Capability } from '../agents/contract.ts'
import type { AnyTool } from 'svc/sdk'
import { assessCommand } from './harm.ts'
import type { Shell } from './shell.ts'

/**
 * Security facts 1.2: words from outside do not become commands unless someone answers for them. A program may have
 * read the network.
 */
const guarded = {
  needs: 'shell' satisfies Capability,
  refuses: ['ExternalNetwork', 'UntrustedAgent', 'UserInput'],
  labels: ['ExternalNetwork'],
} as const
const command = v.pipe(v.string(), v.minLength(1), v.maxLength(32_768))
const processId = v.pipe(v.string(), v.minLength(1), v.maxLength(64), v.description('As process_start answered'))

/** What runs programs, loaded with the first call. */
type LazyShell = () => Promise<Shell>

export function shellTools(shell: LazyShell): readonly AnyTool[] {
  return [execTool(shell), startTool(shell), pollTool(shell), writeTool(shell), killTool(shell), listTool(shell)]
}

function execTool(shell: LazyShell): AnyTool {
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
    run: async (input, call) => (await shell()).exec(input, call),
    recover: async (input, call) => (await shell()).unknownOutcome(input.command, call),
  })
}

function startTool(shell: LazyShell): AnyTool {
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
    run: async (input, call) => (await shell()).start(input, call),
  })
}

function pollTool(shell: LazyShell): AnyTool {
  return defineTool({
    name: 'process_poll',
    risk: 'read',
    needs: 'shell' satisfies Capability,
    polls: true,
    labels: guarded.labels,
    description: 'The output of a process since the last call, and whether it still runs. Answers JSON.',
    input: v.object({ process_id: processId }),
    async run(input, { agentId }) {
      return JSON.stringify((await shell()).processes.poll(agentId, input.process_id))
    },
  })
}

function writeTool(shell: LazyShell): AnyTool {
  return defineTool({
    ...guarded,
    name: 'process_write',
    risk: 'execute',
    description: 'Write to the standard input of a process. End a line with \\n.',
    input: v.object({ process_id: processId, data: v.pipe(v.string(), v.maxLength(65_536)) }),
    assess: () => ({ intent: 'write to a program it runs', standing: 'once' }),
    async run(input, { agentId }) {
      await (await shell()).processes.write(agentId, input.process_id, input.data)
      return 'Written.'
    },
  })
}

function killTool(shell: LazyShell): AnyTool {
  return defineTool({
    name: 'process_kill',
    risk: 'write',
    needs: 'shell' satisfies Capability,
    labels: guarded.labels,
    description: 'End a process and all it started. Answers JSON with its last output.',
    input: v.object({ process_id: processId }),
    async run(input, { agentId }) {
      return JSON.stringify(await (await shell()).processes.kill(agentId, input.process_id))
    },
  })
}

function listTool(shell: LazyShell): AnyTool {
  return defineTool({
    name: 'process_list',
    risk: 'read',
    needs: 'shell' satisfies Capability,
    polls: true,
    description: 'The processes of this agent. Answers a JSON array.',
    input: v.object({}),
    async run(_, { agentId }) {
      return JSON.stringify((await shell()).processes.list(agentId))
    },
  })
}
