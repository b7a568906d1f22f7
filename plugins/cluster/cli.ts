import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'cluster',
  commands: {
    cluster: {
      summary: 'Show the daemons that share the database, and add or drain one',
      load: () => import('./cli/status.ts'),
      commands: {
        status: { summary: 'List the daemons that share the database', load: () => import('./cli/status.ts') },
        join: {
          summary: 'Set this home up for a database that other daemons use',
          load: () => import('./cli/join.ts'),
        },
        drain: { summary: 'Let a daemon take nothing more over, or stop it', load: () => import('./cli/drain.ts') },
        undrain: { summary: 'Let a drained daemon take work again', load: () => import('./cli/undrain.ts') },
      },
    },
  },
  checks: { cluster: { load: () => import('./cli/check.ts') } },
})
