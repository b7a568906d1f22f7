import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'hands',
  commands: {
    hand: {
      summary: 'Agents with a trade that work on a schedule',
      commands: {
        list: { summary: 'List the hands and their instances', load: () => import('./cli/list.ts') },
        show: { summary: 'Show what a hand does and may do', load: () => import('./cli/show.ts') },
        install: { summary: 'Install a hand', load: () => import('./cli/install.ts') },
        remove: { summary: 'Remove an installed hand', load: () => import('./cli/remove.ts') },
        check: { summary: 'Check what a hand needs, and install it', load: () => import('./cli/check-needs.ts') },
        activate: { summary: 'Let a hand work', load: () => import('./cli/activate.ts') },
        pause: { summary: 'Let an instance rest', load: () => import('./cli/pause.ts') },
        resume: { summary: 'Let a paused instance go on', load: () => import('./cli/resume.ts') },
        run: { summary: 'Wake an instance now', load: () => import('./cli/run.ts') },
        stop: { summary: 'Remove an instance with its agent', load: () => import('./cli/stop.ts') },
        stats: { summary: 'Show what an instance has recorded', load: () => import('./cli/stats.ts') },
        settings: { summary: 'Show or change settings', load: () => import('./cli/settings.ts') },
      },
    },
  },
  checks: { hands: { load: () => import('./cli/check.ts') } },
})
