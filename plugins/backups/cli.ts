import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'backups',
  commands: {
    backup: { summary: 'Make a backup of everything', load: () => import('./cli/backup.ts') },
    restore: {
      summary: 'Replace the data of the home by a backup, or the database by a copy',
      load: () => import('./cli/restore.ts'),
    },
  },
})
