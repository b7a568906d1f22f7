import { join } from 'node:path'
import { removeFolder } from 'svc/internal'
import type { Daemon } from 'svc/internal'
import type { PluginContext } from 'svc/sdk'
import type { Agents, AgentVariables } from '../../agents/contract.ts'
import type { Audit } from '../../audit/contract.ts'
import type { Workspaces } from '../../files/contract.ts'
import type { WasmRunner } from '../../wasm/contract.ts'
import type { Settings } from '../config.ts'
import { SkillToolSet } from './tool-set.ts'

export type OpenToolSetDeps = Pick<
  PluginContext<Settings, {}, {}>,
  'config' | 'log' | 'metrics' | 'spawn' | 'tools' | 'vault'
> & {
  readonly services: {
    readonly agents: Agents
    readonly audit: Audit
    readonly daemon: Daemon
    readonly variables: AgentVariables
  }
  optional(name: 'wasm'): WasmRunner | undefined
  optional(name: 'workspaces'): Workspaces | undefined
}

/** The tools of skills, as the configuration limits them. */
export async function openToolSet(ctx: OpenToolSetDeps): Promise<SkillToolSet> {
  const { config, log, metrics, services, spawn, tools, vault } = ctx
  const calls = metrics.counter('svc_skill_calls_total', 'Calls of tools of skills, by skill and outcome.')
  const limits = {
    timeoutSecs: config.timeout_secs,
    outputBytes: config.max_output_bytes,
    outputFiles: config.max_output_files,
  }
  const runs = join(services.daemon.config().dataDir, 'skill-runs')
  // What a crash left there.
  await removeFolder(runs)
  return new SkillToolSet({
    tools,
    log,
    wasm: () => ctx.optional('wasm'),
    guest: { ...limits, fuel: config.wasm_fuel },
    program: {
      ...services,
      spawn,
      vault,
      limits,
      workspaces: () => ctx.optional('workspaces'),
      runs,
    },
    counted: (skill, outcome) => calls.add(1, { skill, outcome }),
  })
}
