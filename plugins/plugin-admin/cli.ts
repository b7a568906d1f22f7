import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'plugin-admin',
  commands: {
    plugin: {
      summary: 'Make, test, install, list, reload and remove plugins',
      commands: {
        new: { summary: 'Make a new plugin, channel or provider', load: () => import('./cli/new.ts') },
        add: { summary: 'Install or update a plugin', load: () => import('./cli/add.ts') },
        remove: { summary: 'Unload a plugin and remove its files', load: () => import('./cli/remove.ts') },
        list: { summary: 'List the plugins and their state', load: () => import('./cli/list.ts') },
        info: { summary: 'Show everything about one plugin', load: () => import('./cli/info.ts') },
        reload: { summary: 'Load the code of a plugin anew', load: () => import('./cli/reload.ts') },
        test: { summary: 'Run the tests of a plugin', load: () => import('./cli/test.ts') },
        doctor: { summary: 'Check a plugin before it is installed', load: () => import('./cli/doctor.ts') },
      },
    },
  },
  checks: { plugins: { load: () => import('./cli/check.ts') } },
})
