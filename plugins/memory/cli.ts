import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'memory',
  commands: {
    memory: {
      summary: 'What agents remember',
      load: () => import('./cli/list.ts'),
      commands: {
        add: { summary: 'Add a memory', load: () => import('./cli/add.ts') },
        search: { summary: 'Search memories by words and meaning', load: () => import('./cli/search.ts') },
        list: { summary: 'List memories, the newest first', load: () => import('./cli/list.ts') },
        show: { summary: 'Show a memory, where it is known from and its history', load: () => import('./cli/show.ts') },
        edit: { summary: 'Change what a memory says', load: () => import('./cli/edit.ts') },
        history: { summary: 'Show what a memory said and when', load: () => import('./cli/history.ts') },
        forget: { summary: 'Delete memories for good', load: () => import('./cli/forget.ts') },
        users: { summary: 'Show for whom memories are kept', load: () => import('./cli/users.ts') },
        stats: { summary: 'Show how many memories there are', load: () => import('./cli/stats.ts') },
        export: { summary: 'Write the memories of an agent or for a person', load: () => import('./cli/export.ts') },
        import: { summary: 'Add memories from a file to an agent', load: () => import('./cli/import.ts') },
        duplicates: { summary: 'Show memories that say the same', load: () => import('./cli/duplicates.ts') },
        consolidate: { summary: 'Keep one of those that say the same', load: () => import('./cli/consolidate.ts') },
        cleanup: { summary: 'Forget what has expired', load: () => import('./cli/cleanup.ts') },
        decay: { summary: 'Let the strength of memories fade', load: () => import('./cli/decay.ts') },
      },
    },
  },
})
