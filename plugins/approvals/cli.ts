import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'approvals',
  commands: {
    approval: {
      summary: 'List, approve and reject actions of agents',
      commands: {
        list: { summary: 'List pending and answered approvals', load: () => import('./cli/list.ts') },
        watch: { summary: 'Wait for approvals and answer them', load: () => import('./cli/watch.ts') },
        approve: { summary: 'Approve the requested action, once', load: () => import('./cli/approve.ts') },
        reject: { summary: 'Reject the requested action', load: () => import('./cli/reject.ts') },
        grants: { summary: 'List standing approvals', load: () => import('./cli/grants.ts') },
        revoke: { summary: 'Revoke a standing approval', load: () => import('./cli/revoke.ts') },
      },
    },
  },
})
