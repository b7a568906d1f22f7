import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'files',
  commands: {
    files: {
      summary: 'Copy the files of agents to another place, and set the key of the bucket',
      commands: {
        copy: {
          summary: 'Copy the files of all agents to a folder, the database or the bucket',
          load: () => import('./cli/copy.ts'),
        },
        'set-key': { summary: 'Store the access key of the bucket', load: () => import('./cli/set-key.ts') },
      },
    },
  },
  checks: { files: { load: () => import('./cli/check.ts') } },
})
