import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'webchat',
  commands: {
    open: { summary: 'Open the page of the running daemon in a browser', load: () => import('./cli/open.ts') },
  },
})
