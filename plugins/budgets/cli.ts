import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'budgets',
  commands: {
    budget: {
      summary: 'Show and set what agents may spend',
      load: () => import('./cli/show.ts'),
      commands: {
        show: { summary: 'Show limits and what was spent', load: () => import('./cli/show.ts') },
        set: { summary: 'Set limits of all agents together or of one', load: () => import('./cli/set.ts') },
      },
    },
  },
})
