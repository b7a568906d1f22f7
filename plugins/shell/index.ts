import { isAbsolute } from 'node:path'
import * as v from 'valibot'
import { definePlugin, fileOnly } from 'svc/sdk'
import { AgentChanged, AgentKilled, Agents } from '../agents/contract.ts'
import { Audit } from '../audit/contract.ts'
import { Workspaces } from '../files/contract.ts'
import { Processes } from './processes.ts'
import { Running } from './running.ts'
import { shellTools } from './tools.ts'
import type { CommandDeps } from './command.ts'

const folders = v.optional(
  v.pipe(v.array(v.pipe(v.string(), v.check(isAbsolute, 'an absolute folder'))), v.maxLength(100)),
  [],
)
const whole = (least: number, most: number) => v.pipe(v.number(), v.integer(), v.minValue(least), v.maxValue(most))

export default definePlugin({
  name: 'shell',
  version: '1.0.0',
  config: fileOnly(
    'says what agents run, and how much of it',
    v.object({
      /** Folders with programs after the system's own ones. */
      path: v.optional(v.array(v.string()), []),
      /** Folders programs may read beside the system's and their workspace. */
      read: folders,
      /**
       * Folders programs may read and write beside their workspace; never one that code or configuration is loaded
       * from.
       */
      write: folders,
      /**
       * Run programs of agents also where neither bubblewrap nor Landlock can confine them: they may do there what the
       * daemon's user may.
       */
      unconfined: v.optional(v.boolean(), false),
      timeout_secs: v.optional(whole(1, 120), 30),
      /** A command that writes nothing for so long is ended. */
      no_output_timeout_secs: v.optional(whole(1, 120), 30),
      max_output_bytes: v.optional(whole(1, 1_048_576), 102_400),
      processes_per_agent: v.optional(whole(0, 64), 5),
      /** A process nobody asks for ends after so long. */
      process_idle_secs: v.optional(whole(1, 86_400), 300),
      process_life_secs: v.optional(whole(1, 604_800), 3600),
    }),
  ),
  requires: { agents: Agents, audit: Audit, workspaces: Workspaces },
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
    const processes = new Processes(limits)
    own('processes', () => processes.end())
    hooks.on(AgentKilled, ({ agent }) => processes.clear(agent.id))
    metrics.observed('svc_shell_processes', 'Processes that agents keep running', () => [{ value: processes.running }])
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
    const running = new Running(deps)
    hooks.on(AgentChanged, ({ agent }) => running.recheck(agent))
    hooks.on(AgentKilled, ({ agent }) => running.clear(agent.id))
    tools.add(...shellTools(deps, running, processes, limits))
    return {}
  },
})
