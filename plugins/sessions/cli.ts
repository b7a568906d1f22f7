import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'sessions',
  commands: {
    session: {
      summary: 'List, show, label, switch and delete conversations',
      commands: {
        list: { summary: 'List the conversations with an agent', load: () => import('./cli/list.ts') },
        show: { summary: 'Show the messages of one', load: () => import('./cli/show.ts') },
        label: { summary: 'Give one a label', load: () => import('./cli/label.ts') },
        switch: { summary: 'Make one the active one of its agent', load: () => import('./cli/switch.ts') },
        delete: { summary: 'Delete one with its messages', load: () => import('./cli/delete.ts') },
      },
    },
  },
})
