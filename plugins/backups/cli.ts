import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'backups',
  commands: {
    backup: { summary: 'Make a backup of everything', load: () => import('./cli/backup.ts') },
    restore: {
      summary: 'Restore a backup, or a copy of the database',
      load: () => import('./cli/restore.ts'),
    },
  },
})
