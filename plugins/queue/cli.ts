import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'queue',
  commands: {
    queue: {
      summary: 'Jobs that wait, run or were given up',
      load: () => import('./cli/status.ts'),
      commands: {
        status: { summary: 'Depth and throughput, by lane', load: () => import('./cli/status.ts') },
        list: { summary: 'List jobs in one state', load: () => import('./cli/list.ts') },
        show: { summary: 'Show a job', load: () => import('./cli/show.ts') },
        retry: { summary: 'Run dead or cancelled jobs again', load: () => import('./cli/retry.ts') },
        cancel: { summary: 'Cancel a job that waits or runs', load: () => import('./cli/cancel.ts') },
      },
    },
  },
})
