import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'plugin-admin',
  commands: {
    plugin: {
      summary: 'List, show and reload plugins',
      commands: {
        list: { summary: 'List the plugins and their state', load: () => import('./cli/list.ts') },
        info: { summary: 'Show everything about one plugin', load: () => import('./cli/info.ts') },
        reload: { summary: 'Load the code of a plugin anew', load: () => import('./cli/reload.ts') },
      },
    },
  },
})
