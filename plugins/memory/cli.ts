import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'memory',
  commands: {
    memory: {
      summary: 'What agents remember',
      load: () => import('./cli/list.ts'),
      commands: {
        search: { summary: 'Search memories by words and meaning', load: () => import('./cli/search.ts') },
        list: { summary: 'List memories, the newest first', load: () => import('./cli/list.ts') },
        show: { summary: 'Show a memory, where it is known from and its history', load: () => import('./cli/show.ts') },
        forget: { summary: 'Delete memories for good', load: () => import('./cli/forget.ts') },
        export: { summary: 'Write the memories of an agent into a file', load: () => import('./cli/export.ts') },
        import: { summary: 'Add memories from a file to an agent', load: () => import('./cli/import.ts') },
        stats: { summary: 'Show how many memories there are', load: () => import('./cli/stats.ts') },
      },
    },
  },
})
