import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'workflows',
  commands: {
    workflow: {
      summary: 'Define, run and watch workflows of several agents',
      load: () => import('./cli/list.ts'),
      commands: {
        list: { summary: 'List the workflows', load: () => import('./cli/list.ts') },
        show: { summary: 'Show the steps of a workflow', load: () => import('./cli/show.ts') },
        create: { summary: 'Create a workflow from a file', load: () => import('./cli/create.ts') },
        import: { summary: 'Import workflows of a compatible service', load: () => import('./cli/import.ts') },
        validate: { summary: 'Check a file, without creating anything', load: () => import('./cli/validate.ts') },
        remove: { summary: 'Remove a workflow', load: () => import('./cli/remove.ts') },
        run: { summary: 'Run a workflow, or rehearse it', load: () => import('./cli/run.ts') },
        runs: { summary: 'List the runs of workflows', load: () => import('./cli/runs.ts') },
        watch: { summary: 'Follow runs as they go on', load: () => import('./cli/watch.ts') },
        pause: { summary: 'Pause a run', load: () => import('./cli/pause.ts') },
        resume: { summary: 'Go on with a paused run', load: () => import('./cli/resume.ts') },
        rerun: { summary: 'Run again, also from a step', load: () => import('./cli/rerun.ts') },
        cancel: { summary: 'Cancel a run', load: () => import('./cli/cancel.ts') },
      },
    },
  },
  checks: { workflows: { load: () => import('./cli/check.ts') } },
})
