import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'audit',
  commands: {
    audit: {
      summary: 'Check the audit trail',
      commands: {
        verify: {
          summary: 'Check the hash chain of the audit trail, with or without a daemon',
          load: () => import('./cli/verify.ts'),
        },
        'reset-anchor': {
          summary: 'Accept the end of the trail as it is, after a restore',
          load: () => import('./cli/reset-anchor.ts'),
        },
      },
    },
  },
})
