import { isAbsolute } from 'node:path'
import * as v from 'valibot'
import { definePlugin, fields, fileOnly } from 'svc/sdk'
import { AgentChanged, AgentKilled, Agents, AgentVariables } from '../agents/contract.ts'
import { Audit } from '../audit/contract.ts'
import { ToolCallChecking } from '../chat/contract.ts'
import { Workspaces } from '../files/contract.ts'
import type { CommandDeps } from './command.ts'
import type { Shell } from './shell.ts'
import { shellTools } from './tools.ts'

const folders = (description: string) =>
  v.optional(
    v.pipe(
      v.array(v.pipe(v.string(), v.check(isAbsolute, 'an absolute folder'))),
      v.maxLength(100),
      v.description(description),
      v.metadata({ opens_folders: true }),
    ),
    [],
  )

/** Tools that run a program, and what they have in common. */
const RUNNERS: ReadonlySet<string> = new Set(['shell_exec', 'process_start'])
const Runs = v.object({ command: v.string(), args: v.optional(v.array(v.string()), []) })

export default definePlugin({
  name: 'shell',
  version: '1.0.0',
  config: fileOnly(
    'says what agents run, and how much of it',
    v.object({
      path: v.optional(
        v.pipe(v.array(v.string()), v.description('Folders with programs, searched after those of the system.')),
        [],
      ),
      read: folders('Folders (absolute) that programs may read besides those of the system and their workspace.'),
      write: folders(
        'Folders (absolute) that programs may write besides their workspace; none that code is loaded from.',
      ),
      unconfined: fields.flag(
        'Run programs of agents where neither bubblewrap nor Landlock confines them, as the user of the daemon.',
      ),
      timeout_secs: fields.integer('Seconds a command may take.', 30, 1, 120),
      no_output_timeout_secs: fields.integer('Seconds after which a command that writes nothing is ended.', 30, 1, 120),
      max_output_bytes: fields.integer('Bytes of output of a command that are kept.', 102_400, 1, 1_048_576),
      processes_per_agent: fields.integer('Background processes that one agent may run at the same time.', 5, 0, 64),
      process_idle_secs: fields.integer('Seconds after which an unused background process is ended.', 300, 1, 86_400),
      process_life_secs: fields.integer('Seconds after which a background process is ended.', 3600, 1, 604_800),
    }),
  ),
  requires: { agents: Agents, audit: Audit, variables: AgentVariables, workspaces: Workspaces },
  setup({ config, hooks, metrics, own, services, spawn, tools }) {
    spawn.checkFolders(
      'read',
      'plugins.shell.path',
      config.path.filter((folder) => isAbsolute(folder)),
    )
    spawn.checkFolders('read', 'plugins.shell.read', config.read)
    spawn.checkFolders('write', 'plugins.shell.write', config.write)
    const limits = {
      perAgent: config.processes_per_agent,
      idleSecs: config.process_idle_secs,
      lifeSecs: config.process_life_secs,
    }
    const deps: CommandDeps = {
      ...services,
      spawn,
      path: config.path,
      confinement: { read: config.read, write: config.write, unconfined: config.unconfined },
      defaults: {
        timeoutSecs: config.timeout_secs,
        silenceSecs: config.no_output_timeout_secs,
        outputBytes: config.max_output_bytes,
      },
    }
    let opened: Shell | undefined
    const shell = async (): Promise<Shell> => {
      const { Shell } = await import('./shell.ts')
      return (opened ??= new Shell(deps, limits))
    }
    own('processes', () => opened?.processes.end())
    hooks.on(AgentChanged, ({ agent }) => opened?.recheck(agent))
    hooks.on(AgentKilled, ({ agent }) => opened?.clear(agent.id))
    metrics.observed('svc_shell_processes', 'Processes that agents keep running.', () => [
      { value: opened?.processes.running ?? 0 },
    ])
    tools.add(...shellTools(shell))
    hooks.on(ToolCallChecking, async ({ agent, tool, args }) => {
      const call = RUNNERS.has(tool) ? v.safeParse(Runs, args) : undefined
      // Other arguments are refused by the tool itself.
      if (call?.success)
        await (await shell()).check(agent.id, call.output.command, call.output.args, tool === 'process_start')
    })
    return {}
  },
})
