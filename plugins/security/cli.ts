import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'security',
  commands: { security: { summary: 'Show whether the guards work', load: () => import('./cli/security.ts') } },
})
