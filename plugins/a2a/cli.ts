import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'a2a',
  commands: {
    a2a: {
      summary: 'Work with agents on other systems over A2A',
      load: () => import('./cli/list.ts'),
      commands: {
        list: { summary: 'List the agents elsewhere', load: () => import('./cli/list.ts') },
        discover: { summary: 'Look at the card of an agent', load: () => import('./cli/discover.ts') },
        approve: { summary: 'Trust an agent elsewhere', load: () => import('./cli/approve.ts') },
        credential: { summary: 'Store the secret for an agent', load: () => import('./cli/credential.ts') },
        remove: { summary: 'Forget an agent elsewhere', load: () => import('./cli/remove.ts') },
        send: { summary: 'Send a message to an agent elsewhere', load: () => import('./cli/send.ts') },
        status: { summary: 'How a message is that was sent', load: () => import('./cli/status.ts') },
        card: { summary: 'Show the card of this service', load: () => import('./cli/card.ts') },
        tasks: { summary: 'List the tasks of other programs', load: () => import('./cli/tasks.ts') },
      },
    },
  },
  checks: { a2a: { load: () => import('./cli/check.ts') } },
})
