import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'goals',
  commands: {
    goal: {
      summary: 'What agents work towards',
      load: () => import('./cli/list.ts'),
      commands: {
        list: { summary: 'List the goals as a tree', load: () => import('./cli/list.ts') },
        add: { summary: 'Make a goal', load: () => import('./cli/add.ts') },
        show: { summary: 'Show a goal with its sub-goals', load: () => import('./cli/show.ts') },
        update: { summary: 'Change a goal', load: () => import('./cli/update.ts') },
        remove: { summary: 'Delete a goal with everything below it', load: () => import('./cli/remove.ts') },
      },
    },
  },
})
