import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'integrations',
  commands: {
    integration: {
      summary: 'Connect agents to services such as GitHub, Notion or a database',
      load: () => import('./cli/list.ts'),
      commands: {
        list: { summary: 'List the integrations that were added', load: () => import('./cli/list.ts') },
        available: { summary: 'List or search the catalogue', load: () => import('./cli/available.ts') },
        add: { summary: 'Add an integration', load: () => import('./cli/add.ts') },
        show: { summary: 'Show an integration with its tools', load: () => import('./cli/show.ts') },
        remove: { summary: 'Remove an integration with its secrets', load: () => import('./cli/remove.ts') },
        enable: { summary: 'Switch an integration on again', load: () => import('./cli/enable.ts') },
        disable: { summary: 'Switch an integration off', load: () => import('./cli/disable.ts') },
        reconnect: { summary: 'Connect an integration again', load: () => import('./cli/reconnect.ts') },
      },
    },
  },
})
