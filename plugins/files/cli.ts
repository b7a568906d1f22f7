import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'files',
  checks: { files: { load: () => import('./cli/check.ts') } },
})
