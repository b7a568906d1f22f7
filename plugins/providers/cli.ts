import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'providers',
  commands: {
    providers: {
      summary: 'List model providers, set their keys, test them',
      load: () => import('./cli/list.ts'),
      commands: {
        'set-key': { summary: 'Store the key of a provider', load: () => import('./cli/set-key.ts') },
        test: { summary: 'Call a provider once', load: () => import('./cli/test.ts') },
      },
    },
  },
  checks: { providers: { load: () => import('./cli/check.ts') } },
  status: { load: () => import('./cli/status.ts') },
})
