import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'canvas',
  commands: {
    canvas: {
      summary: 'What agents showed beside their answers',
      load: () => import('./cli/list.ts'),
      commands: {
        list: { summary: 'List the canvases, the newest first', load: () => import('./cli/list.ts') },
        show: { summary: 'Show a canvas as text or HTML', load: () => import('./cli/show.ts') },
        remove: { summary: 'Delete a canvas', load: () => import('./cli/remove.ts') },
      },
    },
  },
})
