import { defineCli } from 'svc/cli'

const list = () => import('./cli/list.ts')
const commands = {
  list: { summary: 'List pending and answered approvals', load: list },
  show: { summary: 'Show exactly what is asked for', load: () => import('./cli/show.ts') },
  watch: { summary: 'Wait for approvals and answer them', load: () => import('./cli/watch.ts') },
  approve: { summary: 'Approve the requested action, once', load: () => import('./cli/approve.ts') },
  reject: { summary: 'Reject the requested action', load: () => import('./cli/reject.ts') },
  deny: { summary: 'The same as reject', load: () => import('./cli/deny.ts') },
  grants: { summary: 'List standing approvals', load: () => import('./cli/grants.ts') },
  revoke: { summary: 'Revoke a standing approval', load: () => import('./cli/revoke.ts') },
}

export default defineCli({
  name: 'approvals',
  commands: {
    approval: { summary: 'List, approve and reject actions of agents', load: list, commands },
  },
})
