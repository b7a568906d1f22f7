import type { Command } from './command.ts'

/** A name in the tree of commands; one with commands below it may be a command itself. Code of a command is imported when it runs or when its help is shown. */
export interface CommandEntry {
  readonly summary: string
  readonly load?: () => Promise<{ readonly default: Command }>
  readonly commands?: Readonly<Record<string, CommandEntry>>
}

export const commands: Readonly<Record<string, CommandEntry>> = {
  start: { summary: 'Start the daemon and serve until it is stopped', load: () => import('./start.ts') },
  stop: { summary: 'Stop the running daemon and wait until it is gone', load: () => import('./stop.ts') },
  status: { summary: 'Show whether the daemon runs and what it does', load: () => import('./status.ts') },
  dev: { summary: 'Start from source and reload plugins as they are edited', load: () => import('./dev.ts') },
  chat: { summary: 'Talk to an agent', load: () => import('./chat.ts') },
  agent: {
    summary: 'List, spawn, show and kill agents',
    commands: {
      list: { summary: 'List the agents', load: () => import('./agent-list.ts') },
      spawn: { summary: 'Spawn an agent from a manifest', load: () => import('./agent-spawn.ts') },
      show: { summary: 'Show one agent', load: () => import('./agent-show.ts') },
      kill: { summary: 'End an agent and remove it', load: () => import('./agent-kill.ts') },
    },
  },
  session: {
    summary: 'List, show, label, switch and delete conversations',
    commands: {
      list: { summary: 'List the conversations with an agent', load: () => import('./session-list.ts') },
      show: { summary: 'Show what was said in one', load: () => import('./session-show.ts') },
      label: { summary: 'Give one a label', load: () => import('./session-label.ts') },
      switch: { summary: 'Make one the active one of its agent', load: () => import('./session-switch.ts') },
      delete: { summary: 'Delete one with its messages', load: () => import('./session-delete.ts') },
    },
  },
  approval: {
    summary: 'List, approve and reject what agents want to do',
    commands: {
      list: {
        summary: 'List what waits for an answer, and what was answered',
        load: () => import('./approval-list.ts'),
      },
      watch: { summary: 'Wait for what agents want to do and answer it', load: () => import('./approval-watch.ts') },
      approve: { summary: 'Let an agent do exactly this, once', load: () => import('./approval-approve.ts') },
      reject: { summary: 'Do not let an agent do this', load: () => import('./approval-reject.ts') },
      grants: { summary: 'List standing approvals', load: () => import('./approval-grants.ts') },
      revoke: { summary: 'Revoke a standing approval', load: () => import('./approval-revoke.ts') },
    },
  },
  device: {
    summary: 'List, pair and remove devices with a key of their own',
    commands: {
      list: { summary: 'List the paired devices', load: () => import('./device-list.ts') },
      pair: { summary: 'Make a code for one more device', load: () => import('./device-pair.ts') },
      remove: { summary: 'Remove a device and end what it has open', load: () => import('./device-remove.ts') },
    },
  },
  manifest: {
    summary: 'Sign manifests of agents and check signatures',
    commands: {
      keygen: { summary: 'Make a key that signs', load: () => import('./manifest-keygen.ts') },
      sign: { summary: 'Sign a manifest', load: () => import('./manifest-sign.ts') },
      verify: { summary: 'Check a signed manifest', load: () => import('./manifest-verify.ts') },
    },
  },
  models: { summary: 'List the models and what they cost', load: () => import('./models.ts') },
  providers: {
    summary: 'List the providers of models, give them keys, try them',
    load: () => import('./providers.ts'),
    commands: {
      'set-key': { summary: 'Store the key of a provider', load: () => import('./providers-set-key.ts') },
      test: { summary: 'Call a provider once', load: () => import('./providers-test.ts') },
    },
  },
  audit: {
    summary: 'Check the audit trail',
    commands: {
      verify: {
        summary: 'Check the hash chain of the audit trail, with or without a daemon',
        load: () => import('./audit-verify.ts'),
      },
    },
  },
  backup: { summary: 'Make a backup of everything', load: () => import('./backup.ts') },
  restore: {
    summary: 'Put a backup, or a copy of the database, in the place of what is there',
    load: () => import('./restore.ts'),
  },
  plugin: {
    summary: 'List and reload plugins',
    commands: {
      list: { summary: 'List the plugins and their state', load: () => import('./plugin-list.ts') },
      reload: { summary: 'Load the code of a plugin anew', load: () => import('./plugin-reload.ts') },
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
  completion: { summary: 'Print the completion script of a shell', load: () => import('./completion.ts') },
}
