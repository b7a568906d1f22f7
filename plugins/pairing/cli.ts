import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'pairing',
  commands: {
    device: {
      summary: 'List, pair and remove devices, each with a key of its own',
      commands: {
        list: { summary: 'List the paired devices', load: () => import('./cli/list.ts') },
        pair: { summary: 'Make a code for one more device', load: () => import('./cli/pair.ts') },
        remove: { summary: 'Remove a device and end what it has open', load: () => import('./cli/remove.ts') },
      },
    },
  },
})
