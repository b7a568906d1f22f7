import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'triggers',
  commands: {
    trigger: {
      summary: 'Ask agents something when something happens',
      load: () => import('./cli/list.ts'),
      commands: {
        list: { summary: 'List the triggers', load: () => import('./cli/list.ts') },
        add: { summary: 'Make a trigger', load: () => import('./cli/add.ts') },
        show: { summary: 'Show a trigger', load: () => import('./cli/show.ts') },
        enable: { summary: 'Start a trigger again', load: () => import('./cli/enable.ts') },
        disable: { summary: 'Stop a trigger without removing it', load: () => import('./cli/disable.ts') },
        remove: { summary: 'Remove a trigger with its history', load: () => import('./cli/remove.ts') },
        history: { summary: 'What it fired for, and what held it back', load: () => import('./cli/history.ts') },
      },
    },
  },
})
