import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'migrate',
  commands: {
    migrate: { summary: 'Move in from OpenClaw, OpenFang or LibreFang', load: () => import('./cli/migrate.ts') },
  },
})
