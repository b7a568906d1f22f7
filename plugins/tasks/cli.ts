import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'tasks',
  commands: {
    task: {
      summary: 'Work for agents, with its results',
      load: () => import('./cli/list.ts'),
      commands: {
        list: { summary: 'List tasks, the newest first', load: () => import('./cli/list.ts') },
        show: { summary: 'Show a task with its result', load: () => import('./cli/show.ts') },
        post: { summary: 'Post a task for an agent, or for any', load: () => import('./cli/post.ts') },
        cancel: { summary: 'Cancel a task that has not ended', load: () => import('./cli/cancel.ts') },
        retry: { summary: 'Have a task done again that has ended', load: () => import('./cli/retry.ts') },
      },
    },
  },
})
