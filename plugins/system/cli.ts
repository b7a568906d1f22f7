import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'system',
  commands: { logs: { summary: 'Show the log of the daemon', load: () => import('./cli/logs.ts') } },
})
