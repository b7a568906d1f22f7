import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'media',
  checks: { media: { load: () => import('./cli/check.ts') } },
})
