import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'usage',
  commands: { usage: { summary: 'Show tokens and costs', load: () => import('./cli/usage.ts') } },
})
