import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'schedules',
  commands: {
    schedule: {
      summary: 'Ask agents something at certain times',
      load: () => import('./cli/list.ts'),
      commands: {
        list: { summary: 'List the schedules with their next times', load: () => import('./cli/list.ts') },
        add: { summary: 'Make a schedule', load: () => import('./cli/add.ts') },
        show: { summary: 'Show a schedule', load: () => import('./cli/show.ts') },
        run: { summary: 'Run a schedule now', load: () => import('./cli/run.ts') },
        enable: { summary: 'Start a schedule again', load: () => import('./cli/enable.ts') },
        disable: { summary: 'Stop a schedule without removing it', load: () => import('./cli/disable.ts') },
        remove: { summary: 'Remove a schedule with its history', load: () => import('./cli/remove.ts') },
        history: { summary: 'Past runs, and why some were skipped', load: () => import('./cli/history.ts') },
      },
    },
  },
})
