import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'skills',
  commands: {
    skill: {
      summary: 'List, install, make, test and remove skills',
      commands: {
        list: { summary: 'List the skills', load: () => import('./cli/list.ts') },
        search: { summary: 'Find skills by words', load: () => import('./cli/search.ts') },
        info: { summary: 'Show everything about one skill', load: () => import('./cli/info.ts') },
        install: { summary: 'Install or update a skill', load: () => import('./cli/install.ts') },
        create: { summary: 'Make a new skill with a test', load: () => import('./cli/create.ts') },
        test: { summary: 'Run the tests of a skill', load: () => import('./cli/test.ts') },
        config: {
          summary: 'Values of the variables of a skill',
          load: () => import('./cli/config/list.ts'),
          commands: {
            list: { summary: 'List the variables', load: () => import('./cli/config/list.ts') },
            set: { summary: 'Store a value', load: () => import('./cli/config/set.ts') },
            remove: { summary: 'Remove a value', load: () => import('./cli/config/remove.ts') },
          },
        },
        remove: { summary: 'Uninstall a skill', load: () => import('./cli/remove.ts') },
      },
    },
  },
})
