import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'comms',
  commands: {
    comms: {
      summary: 'What agents say to each other',
      load: () => import('./cli/events.ts'),
      commands: {
        events: { summary: 'List or follow messages, agents and tasks', load: () => import('./cli/events.ts') },
        send: { summary: 'Send a message to an agent or a chat', load: () => import('./cli/send.ts') },
        topology: { summary: 'Who made whom, and who writes to whom', load: () => import('./cli/topology.ts') },
      },
    },
  },
})
