import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'browser',
  commands: {
    browser: {
      summary: 'Browsers that agents have open',
      commands: {
        list: { summary: 'List the open browsers', load: () => import('./cli/list.ts') },
        close: { summary: 'Close the browser of an agent', load: () => import('./cli/close.ts') },
      },
    },
  },
  checks: { browser: { load: () => import('./cli/check.ts') } },
})
