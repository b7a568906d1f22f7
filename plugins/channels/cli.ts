import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'channels',
  commands: {
    channels: {
      summary: 'Connect chat platforms: add accounts, test them, let people in',
      load: () => import('./cli/list.ts'),
      commands: {
        list: { summary: 'List the channels', load: () => import('./cli/list.ts') },
        add: { summary: 'Configure an account of a channel', load: () => import('./cli/add.ts') },
        status: { summary: 'Show the state of a channel', load: () => import('./cli/status.ts') },
        test: { summary: 'Check credentials, or send a test message', load: () => import('./cli/test.ts') },
        enable: { summary: 'Connect an account', load: () => import('./cli/enable.ts') },
        disable: { summary: 'Disconnect an account', load: () => import('./cli/disable.ts') },
        remove: { summary: 'Remove an account with its secrets', load: () => import('./cli/remove.ts') },
        login: { summary: 'Sign in with a QR code', load: () => import('./cli/login.ts') },
        pair: { summary: 'Make a code that lets a person talk to the bot', load: () => import('./cli/pair.ts') },
        bindings: {
          summary: 'Which agent answers whom',
          load: () => import('./cli/bindings/list.ts'),
          commands: {
            list: { summary: 'List the bindings', load: () => import('./cli/bindings/list.ts') },
            add: { summary: 'Bind chats or people to an agent', load: () => import('./cli/bindings/add.ts') },
            remove: { summary: 'Remove a binding', load: () => import('./cli/bindings/remove.ts') },
          },
        },
        outbox: { summary: 'Messages that could not be sent', load: () => import('./cli/outbox.ts') },
      },
    },
  },
  status: { load: () => import('./cli/status-lines.ts') },
  checks: { channels: { load: () => import('./cli/check.ts') } },
})
