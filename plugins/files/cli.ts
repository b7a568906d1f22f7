import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'files',
  commands: {
    files: {
      summary: 'Set the key of the bucket of files',
      commands: {
        'set-key': { summary: 'Store the access key of the bucket', load: () => import('./cli/set-key.ts') },
      },
    },
  },
  checks: { files: { load: () => import('./cli/check.ts') } },
})
