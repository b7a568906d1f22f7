import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'migrate',
  commands: {
    upgrade: { summary: 'Try a new version of svc on a copy of the home', load: () => import('./cli/upgrade.ts') },
    migrate: { summary: 'Move in from OpenClaw, OpenFang or LibreFang', load: () => import('./cli/migrate.ts') },
  },
})
