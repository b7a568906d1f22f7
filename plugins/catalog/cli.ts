import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'catalog',
  commands: { models: { summary: 'List the models and what they cost', load: () => import('./cli/models.ts') } },
})
