import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'templates',
  commands: {
    template: {
      summary: 'Templates of agents',
      load: () => import('./cli/list.ts'),
      commands: {
        list: { summary: 'List the templates', load: () => import('./cli/list.ts') },
        show: { summary: 'Show a template with its guide', load: () => import('./cli/show.ts') },
      },
    },
    init: { summary: 'Choose a model and make the first agent', load: () => import('./cli/init.ts') },
  },
})
