import type { CommandTree } from './command.ts'

/** The commands of the daemon itself; every other command comes from a plugin. */
export const coreCommands: CommandTree = {
  start: { summary: 'Start the daemon and serve until it is stopped', load: () => import('./start.ts') },
  stop: { summary: 'Stop the running daemon and wait until it is gone', load: () => import('./stop.ts') },
  status: { summary: 'Show whether the daemon runs and what it does', load: () => import('./status.ts') },
  dev: { summary: 'Start from source and reload plugins as they are edited', load: () => import('./dev.ts') },
  service: {
    summary: 'Let systemd start the daemon',
    commands: {
      install: { summary: 'Write a systemd user unit and start it', load: () => import('./service/install.ts') },
      status: { summary: 'Show whether the unit is enabled and runs', load: () => import('./service/status.ts') },
      remove: { summary: 'Stop the unit and remove it', load: () => import('./service/remove.ts') },
    },
  },
  config: {
    summary: 'Read and change the configuration',
    commands: {
      get: { summary: 'Show the configuration or one key of it', load: () => import('./config-get.ts') },
      set: { summary: 'Write one key into config.toml', load: () => import('./config-set.ts') },
      reload: {
        summary: 'Let the running daemon read its configuration again',
        load: () => import('./config-reload.ts'),
      },
      schema: { summary: 'Print the JSON Schema of config.toml', load: () => import('./config-schema.ts') },
    },
  },
  doctor: { summary: 'Check this installation and say what to do', load: () => import('./doctor.ts') },
  update: { summary: 'Ask whether there is a newer version', load: () => import('./update.ts') },
  completion: { summary: 'Print the completion script of a shell', load: () => import('./completion.ts') },
}
