import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'sessions',
  commands: {
    session: {
      summary: 'List, search, show, export, branch, label, switch and delete conversations',
      commands: {
        list: { summary: 'List the conversations with an agent', load: () => import('./cli/list.ts') },
        search: { summary: 'Find what was said in conversations', load: () => import('./cli/search.ts') },
        show: { summary: 'Show the messages of a conversation', load: () => import('./cli/show.ts') },
        export: { summary: 'Write a conversation as Markdown or JSON', load: () => import('./cli/export.ts') },
        branch: {
          summary: 'Begin a new conversation with a copy of an old one',
          load: () => import('./cli/branch.ts'),
        },
        label: { summary: 'Label a conversation', load: () => import('./cli/label.ts') },
        switch: { summary: 'Make a conversation the active one of its agent', load: () => import('./cli/switch.ts') },
        delete: { summary: 'Delete a conversation and its messages', load: () => import('./cli/delete.ts') },
      },
    },
  },
})
