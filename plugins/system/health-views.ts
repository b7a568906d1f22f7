import { commandName } from 'svc/internal'
import type { RunningServices } from './health-routes.ts'
import { publicHealth } from './public-health.ts'

export async function describeHealth({ daemon, agents, inference }: RunningServices) {
  const { database } = daemon.health()
  const problem = await inference()?.defaultProblem()
  return {
    ...publicHealth(daemon.health()),
    version: daemon.build.version,
    agent_count: (await agents()?.list())?.length ?? 0,
    database,
    config_warnings: [...daemon.warnings(), ...(problem === undefined ? [] : [`default model: ${problem}`])],
    failed_plugins: daemon
      .plugins()
      .flatMap(({ name, state, error }) => (error === undefined ? [] : [{ name, state, reason: error }])),
  }
}

export async function describeStatus({ daemon, agents, inference }: RunningServices) {
  const config = daemon.config()
  const { uptimeSecs } = daemon.health()
  const list = [...((await agents()?.summaries()) ?? [])]
  const chosen = await inference()?.defaultModel()
  return {
    status: daemon.stopping === undefined ? ('running' as const) : ('stopping' as const),
    version: daemon.build.version,
    agent_count: list.length,
    data_dir: config.dataDir,
    home_dir: config.homeDir,
    listen_addr: config.listenAddr,
    log_level: config.logLevel,
    api_key_set: config.apiKeySet,
    default_provider: chosen?.provider ?? 'default',
    default_model: chosen?.model ?? 'default',
    default_problem: (await inference()?.defaultProblem()) ?? null,
    command: commandName(),
    uptime_seconds: Math.floor(uptimeSecs),
    started_at: daemon.startedAt,
    agents: list,
  }
}
