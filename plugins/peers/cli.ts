import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'peers',
  commands: {
    peer: {
      summary: 'List the daemons that this one is linked with, and write to their agents',
      load: () => import('./cli/list.ts'),
      commands: {
        list: { summary: 'List the linked daemons and how this one is reached', load: () => import('./cli/list.ts') },
        show: { summary: 'Show a daemon with its key and its agents', load: () => import('./cli/show.ts') },
        ping: { summary: 'Ask a linked daemon whether it is there', load: () => import('./cli/ping.ts') },
        send: { summary: 'Send a message to an agent of another daemon', load: () => import('./cli/send.ts') },
        unpin: { summary: 'Forget the key of a daemon that was set up anew', load: () => import('./cli/unpin.ts') },
      },
    },
  },
  checks: { peers: { load: () => import('./cli/check.ts') } },
})
